/*
 * memory.c - any bytes as what a limiter had learned: as they are, and in place of some of a true
 * memory. The sum at its end is put right in half of these, so that more than the sum is tried.
 */
#include "samples.h"

#include "lib/limiter/saved_state.h"

/* What is taken off the front of the input. */
struct choice {
	uint8_t saved, loaded; /* limits */
	uint8_t way;           /* bit 0: a true memory first; bit 1: with the right sum */
	uint8_t at;            /* where in it, in eighths */
	uint32_t minutes;      /* old */
};

static unsigned limits(void)
{
	unsigned count = 0;

	while (weir_limit_at(count) != NULL)
		count++;
	return count;
}

static struct weir_limiter *limiter_of(uint8_t which)
{
	struct weir_limiter *limiter;
	struct weir_config config;

	weir_config_init(&config);
	config.limit = weir_limit_at(which % limits());
	config.stripes = 1;
	must(weir_limiter_create(&config, &limiter) == 0);
	return limiter;
}

static size_t true_memory(const struct choice *choice, unsigned char *memory)
{
	struct weir_limiter *limiter = limiter_of(choice->saved);
	int size;

	feed(limiter, 5, 50);
	size = weir_limiter_save(limiter, memory, WEIR_SAVED_MAX);
	must(size > 0);
	weir_limiter_destroy(limiter);
	return (size_t)size;
}

static size_t compose(const struct choice *choice, const uint8_t *data, size_t size,
		      unsigned char *memory)
{
	size_t whole, at;
	uint64_t sum;

	if ((choice->way & 1) == 0) {
		memcpy(memory, data, size);
		return size;
	}
	whole = true_memory(choice, memory);
	at = choice->at % (whole / 8) * 8;
	memcpy(memory + at, data, size < whole - at ? size : whole - at);
	if ((choice->way & 2) == 0)
		return whole;
	sum = saved_hash(SAVED_HASH_BEGIN, memory, whole - sizeof(sum));
	memcpy(memory + whole - sizeof(sum), &sum, sizeof(sum));
	return whole;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char memory[WEIR_SAVED_MAX], *exact;
	struct weir_limiter *limiter;
	struct choice choice;
	char why[200] = "";
	uint32_t before;

	if (size < sizeof(choice) || size > sizeof(choice) + sizeof(memory))
		return 0;
	memcpy(&choice, data, sizeof(choice));
	size = compose(&choice, data + sizeof(choice), size - sizeof(choice), memory);
	exact = allocate(size);
	memcpy(exact, memory, size);

	limiter = limiter_of(choice.loaded);
	before = weir_limit(limiter);
	weir_saved_age(exact, size);
	if (weir_limiter_load(limiter, exact, size, choice.minutes % 500 * 60 * WEIR_S, why,
			      sizeof(why)) != 0)
		must(is_sentence(why) && weir_limit(limiter) == before);
	check_limit(limiter);
	feed(limiter, 10, 100);
	weir_limiter_destroy(limiter);
	free(exact);
	return 0;
}
