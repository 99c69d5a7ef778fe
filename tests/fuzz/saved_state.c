/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * saved_state.c - arbitrary bytes as a saved state: as they are, and overwriting part of a valid
 * one. In half of the latter the checksum is corrected, so that more than the checksum is tested.
 */
#include "samples.h"

#include "lib/limiter/saved_state.h"

/* Taken from the front of the input. */
struct choice {
	uint8_t saved, loaded; /* indices of limits */
	uint8_t way;           /* bit 0: start with a valid state; bit 1: correct its checksum */
	uint8_t at;            /* where to overwrite it, in units of 8 bytes */
	uint32_t minutes;      /* age of the state */
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

static size_t true_state(const struct choice *choice, unsigned char *bytes)
{
	struct weir_limiter *limiter = limiter_of(choice->saved);
	int size;

	feed(limiter, 5, 50);
	size = weir_limiter_save(limiter, bytes, WEIR_SAVED_MAX);
	must(size > 0);
	weir_limiter_destroy(limiter);
	return (size_t)size;
}

static size_t compose(const struct choice *choice, const uint8_t *data, size_t size,
		      unsigned char *bytes)
{
	size_t whole, at;
	uint64_t sum;

	if ((choice->way & 1) == 0) {
		memcpy(bytes, data, size);
		return size;
	}
	whole = true_state(choice, bytes);
	at = choice->at % (whole / 8) * 8;
	memcpy(bytes + at, data, size < whole - at ? size : whole - at);
	if ((choice->way & 2) == 0)
		return whole;
	sum = saved_hash(SAVED_HASH_BEGIN, bytes, whole - sizeof(sum));
	memcpy(bytes + whole - sizeof(sum), &sum, sizeof(sum));
	return whole;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char bytes[WEIR_SAVED_MAX], *exact;
	struct weir_limiter *limiter;
	struct choice choice;
	char why[200] = "";
	uint32_t before;

	if (size < sizeof(choice) || size > sizeof(choice) + sizeof(bytes))
		return 0;
	memcpy(&choice, data, sizeof(choice));
	size = compose(&choice, data + sizeof(choice), size - sizeof(choice), bytes);
	exact = allocate(size);
	memcpy(exact, bytes, size);

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
