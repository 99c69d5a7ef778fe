/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin.c - broken custom limits: their table, their parameters and what they return are arbitrary
 * bytes. A limit that the library accepts must be harmless to the limiter.
 */
#include "samples.h"

#define PARAMS_MAX  5
#define NUMBERS_MAX (WEIR_NUMBERS_MAX + 2)
#define TEXT_SIZE   24

/* A custom limit, and the source of what it returns. */
struct wrong {
	const uint8_t *data;
	size_t left, answers_left;
	const uint8_t *answers;
	uint32_t state_size, config_size;
	char name[TEXT_SIZE], names[PARAMS_MAX][TEXT_SIZE], defaults[PARAMS_MAX][TEXT_SIZE];
	struct weir_param params[PARAMS_MAX];
	const char *numbers[NUMBERS_MAX + 1];
	struct weir_sampling sampling;
	struct weir_limit_ops ops;
};

/* Limits have no argument of their own, hence static. */
static struct wrong *now;

static void take(struct wrong *w, void *to, size_t size)
{
	size_t some = size < w->left ? size : w->left;

	memset(to, 0, size);
	memcpy(to, w->data, some);
	w->data += some;
	w->left -= some;
}

static uint8_t byte(struct wrong *w)
{
	uint8_t one;

	take(w, &one, 1);
	return one;
}

static void take_text(struct wrong *w, char *to)
{
	size_t length = byte(w) % TEXT_SIZE;

	take(w, to, length);
	to[length] = '\0';
}

/* A number that is often valid: an input that is all wrong is refused for its first fault. */
static uint32_t number(struct wrong *w, uint32_t good)
{
	uint32_t any;

	if (byte(w) % 8 != 0)
		return good;
	take(w, &any, sizeof(any));
	return any;
}

static double answer(void)
{
	double any;

	if (now->answers_left < sizeof(any))
		return 20;
	memcpy(&any, now->answers, sizeof(any));
	now->answers += sizeof(any);
	now->answers_left -= sizeof(any);
	return any;
}

static double init(void *state, const void *config, double random)
{
	unsigned char *bytes = state;
	const unsigned char *from = config;

	must(random >= 0 && random < 1);
	for (uint32_t i = 0; i < now->state_size; i++)
		bytes[i] = now->config_size > 0 ? from[i % now->config_size] : 0x5a;
	return answer();
}

static double update(void *state, const struct weir_window *w)
{
	must(w->limit >= 1 && w->limit <= WEIR_LIMIT_MAX && w->end >= w->start);
	must(w->rtt >= 0 && w->rtt_min <= w->rtt_max);
	must(w->count > 0 || w->dropped > 0 || w->timed_out > 0 ||
	     ((now->ops.flags & WEIR_LIMIT_CANCELLED) != 0 && w->others > 0));
	memset(state, 0xa5, now->state_size);
	return answer();
}

static const char *check(const void *config)
{
	const unsigned char *bytes = config;

	return now->config_size > 0 && bytes[now->config_size - 1] == 0xff ? "it ends badly" : NULL;
}

static void observe(const void *state, double *values)
{
	(void)state;
	for (unsigned i = 0; now->numbers[i] != NULL; i++)
		values[i] = answer();
}

static void take_param(struct wrong *w, unsigned index)
{
	struct weir_param *p = &w->params[index];

	take_text(w, w->names[index]);
	take_text(w, w->defaults[index]);
	*p = (struct weir_param){
		.name = byte(w) % 16 == 0 ? NULL : w->names[index],
		.type = (enum weir_param_type)number(w, byte(w) % 5),
		.offset = number(w, byte(w) % 64),
		.def = byte(w) % 16 == 0 ? NULL : w->defaults[index],
		.max = 1e9,
	};
	if (byte(w) % 8 == 0) {
		take(w, &p->min, sizeof(p->min));
		take(w, &p->max, sizeof(p->max));
	}
}

static void take_sampling(struct wrong *w)
{
	w->sampling = (struct weir_sampling){
		.windowing = (enum weir_windowing)number(w, byte(w) % 3),
		.sparse = (enum weir_sparse)number(w, byte(w) % 3),
		.rtt = (enum weir_rtt)number(w, byte(w) % 4),
		.window_samples = number(w, byte(w)),
	};
	take(w, &w->sampling.window_min, byte(w) % 9);
	take(w, &w->sampling.window_max, byte(w) % 9);
	if (byte(w) % 2 == 0)
		take(w, &w->sampling.quantile, sizeof(w->sampling.quantile));
}

static void take_ops(struct wrong *w)
{
	unsigned shown = byte(w) % (NUMBERS_MAX + 1);

	for (unsigned i = 0; i < PARAMS_MAX; i++)
		take_param(w, i);
	for (unsigned i = 0; i < shown; i++)
		w->numbers[i] = "shown";
	take_text(w, w->name);
	take_sampling(w);
	w->ops = (struct weir_limit_ops){
		.size = number(w, sizeof(w->ops)),
		.flags = number(w, 0),
		.name = byte(w) % 32 == 0 ? NULL : w->name,
		.version = number(w, 1),
		.state_size = number(w, 64),
		.config_size = number(w, 80),
		.param_count = byte(w) % (PARAMS_MAX + 1),
		.params = byte(w) % 32 == 0 ? NULL : w->params,
		.check = byte(w) % 2 == 0 ? NULL : check,
		.init = byte(w) % 32 == 0 ? NULL : init,
		.update = byte(w) % 32 == 0 ? NULL : update,
		.numbers = byte(w) % 32 == 0 ? NULL : w->numbers,
		.observe = byte(w) % 32 == 0 ? NULL : observe,
		.sampling = byte(w) % 2 == 0 ? NULL : &w->sampling,
	};
	w->state_size = w->ops.state_size;
	w->config_size = w->ops.config_size;
}

static void save_and_load(struct weir_limiter *limiter)
{
	unsigned char saved[WEIR_SAVED_MAX];
	char why[200] = "";
	int size = weir_limiter_save(limiter, saved, sizeof(saved));

	must(size > 0);
	if (weir_limiter_load(limiter, saved, (size_t)size, 0, why, sizeof(why)) != 0)
		must(is_sentence(why));
	if (weir_limiter_load(limiter, saved, (size_t)size, WEIR_SAVED_HALF_LIFE, why,
			      sizeof(why)) != 0)
		must(is_sentence(why));
	check_limit(limiter);
}

static void try_out(struct wrong *w, const struct weir_config *config)
{
	char why[200] = "";
	struct weir_limiter *limiter = NULL;
	unsigned pauses;

	if (weir_config_check(config, why, sizeof(why)) != 0) {
		must(is_sentence(why));
		must(weir_limiter_create(config, &limiter) == -EINVAL && limiter == NULL);
		return;
	}
	w->answers = w->data;
	w->answers_left = w->left;
	must(weir_limiter_create(config, &limiter) == 0);
	check_limit(limiter);
	pauses = feed(limiter, 5, 200);
	save_and_load(limiter);
	pauses += feed(limiter, 10, 50);
	must(pauses == 0 || (w->ops.flags & WEIR_LIMIT_PAUSES) != 0);
	weir_limiter_destroy(limiter);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_Alignas(max_align_t) char limit_config[WEIR_LIMIT_CONFIG_MAX] = "";
	char text[TEXT_SIZE], why[200] = "";
	struct weir_config config;
	struct wrong *w = allocate(sizeof(*w));

	*w = (struct wrong){.data = data, .left = size};
	now = w;
	take_ops(w);
	take_text(w, text);
	if (weir_limit_parse(&w->ops, limit_config, text, why, sizeof(why)) != 0)
		must(is_sentence(why));
	weir_config_init(&config);
	config.limit = &w->ops;
	config.limit_config = byte(w) % 2 == 0 ? NULL : limit_config;
	config.limit_config_size = byte(w) % 4 == 0 ? byte(w) : 0;
	config.stripes = 1;
	try_out(w, &config);
	now = NULL;
	free(w);
	return 0;
}
