/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters as text and as structures: what is accepted, what is refused, and with which sentence.
 */

#include <errno.h>
#include <locale.h>
#include <string.h>

#include <criterion/criterion.h>

#include <weir/weir.h>

static char why[200];

static int parse(const struct weir_limit_ops *ops, void *config, const char *text)
{
	memset(why, 0, sizeof(why));
	return weir_limit_parse(ops, config, text, why, sizeof(why));
}

Test(params, text_sets_each_kind_of_value)
{
	struct weir_vegas_config vegas = {.initial = 0};
	struct weir_aimd_config aimd = {.initial = 0};

	cr_assert_eq(parse(&weir_vegas, &vegas,
			   "initial=7,smoothing=0.25,alpha=percent:3:10,beta=log10plus:9,"
			   "increase=mul:1.5,decrease=sub_log10:2,probe=99"),
		     0, "%s", why);
	cr_assert_eq(vegas.initial, 7);
	cr_assert_eq(vegas.smoothing, 0.25);
	cr_assert_eq(vegas.alpha.kind, WEIR_SCALE_PERCENT);
	cr_assert(vegas.alpha.k == 3 && vegas.alpha.percent == 10);
	cr_assert(vegas.beta.kind == WEIR_SCALE_LOG10_PLUS && vegas.beta.k == 9);
	cr_assert(vegas.increase.kind == WEIR_STEP_MUL && vegas.increase.by == 1.5);
	cr_assert(vegas.decrease.kind == WEIR_STEP_ADD_LOG10 && vegas.decrease.by == -2);
	cr_assert_eq(vegas.probe, 99);

	cr_assert_eq(parse(&weir_aimd, &aimd, "timeout=1.5ms"), 0, "%s", why);
	cr_assert_eq(aimd.timeout, 1500 * WEIR_US);
	cr_assert_eq(parse(&weir_aimd, &aimd, "timeout=2m"), 0, "%s", why);
	cr_assert_eq(aimd.timeout, 120 * WEIR_S);
	cr_assert_eq(parse(&weir_aimd, &aimd, ""), 0);
}

Test(params, never_is_accepted_only_where_it_has_a_meaning)
{
	struct weir_gradient_config gradient = {.initial = 0};
	struct weir_vegas_config vegas = {.initial = 0};

	cr_assert_eq(parse(&weir_gradient, &gradient, "probe=never"), 0, "%s", why);
	cr_assert_eq(gradient.probe, WEIR_NEVER);
	cr_assert_eq(parse(&weir_vegas, &vegas, "probe=never"), -EINVAL);
}

Test(params, bad_text_is_refused_with_a_sentence)
{
	static const struct {
		const struct weir_limit_ops *ops;
		const char *text, *says;
	} cases[] = {
		{&weir_vegas, "alpha", "name=value"},
		{&weir_vegas, "gamma=1", "no parameter \"gamma\""},
		{&weir_vegas, "initial=", "cannot be"},
		{&weir_vegas, "initial=-1", "cannot be"},
		{&weir_vegas, "initial=12x", "cannot be"},
		{&weir_vegas, "initial=99999999999", "cannot be"},
		{&weir_vegas, "initial=99999999999999999999999", "cannot be"},
		{&weir_vegas, "initial=0", "outside"},
		{&weir_vegas, "smoothing=nan", "cannot be"},
		{&weir_vegas, "smoothing=1.5", "outside"},
		{&weir_vegas, "smoothing=inf", "outside"},
		{&weir_vegas, "alpha=log2:3", "cannot be"},
		{&weir_vegas, "alpha=percent:3", "cannot be"},
		{&weir_vegas, "increase=add:", "cannot be"},
		{&weir_vegas, "probe=0", "probe is 0, outside 1 to"},
		{&weir_gradient, "probe=0", "probe is 0, outside 1 to"},
		{&weir_aimd, "backoff=1", "outside"},
		{&weir_aimd, "timeout=5", "cannot be"},
		{&weir_aimd, "timeout=-5s", "cannot be"},
		{&weir_aimd, "timeout=5h", "cannot be"},
		{&weir_fixed, "limit=0", "outside"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned char config[WEIR_LIMIT_CONFIG_MAX] = {0};

		cr_assert_eq(parse(cases[i].ops, config, cases[i].text), -EINVAL, "%s",
			     cases[i].text);
		cr_assert(strstr(why, cases[i].says) != NULL, "%s: %s", cases[i].text, why);
		cr_assert(why[strlen(why) - 1] == '.', "%s", why);
	}
}

Test(params, a_limit_from_one_text)
{
	_Alignas(16) unsigned char config[WEIR_LIMIT_CONFIG_MAX];
	const struct weir_vegas_config *vegas = (const void *)config;
	const struct weir_limit_ops *ops;

	cr_assert_eq(
		weir_limit_from_text("vegas:alpha=log10:2,max=500", &ops, config, why, sizeof(why)),
		0);
	cr_assert_eq(ops, &weir_vegas);
	cr_assert(vegas->alpha.kind == WEIR_SCALE_LOG10 && vegas->alpha.k == 2);
	cr_assert_eq(vegas->max, 500);
	cr_assert_eq(weir_limit_from_text("aimd", &ops, config, why, sizeof(why)), 0);
	cr_assert_eq(weir_limit_from_text("aimd:", &ops, config, why, sizeof(why)), 0);

	cr_assert_eq(weir_limit_from_text("newton", &ops, config, why, sizeof(why)), -EINVAL);
	cr_assert_null(ops);
	cr_assert_str_eq(why, "There is no limit \"newton\"; there are elastic, aimd, bbr, brpc, "
			      "cautious, codel, envoy, failsafe, fixed, gradient, "
			      "gradient2, hillclimb, protego, settable, vector, vegas.");
	cr_assert_eq(weir_limit_from_text("", &ops, config, why, sizeof(why)), -EINVAL);
	cr_assert_eq(weir_limit_from_text("aimd:min=30,max=20", &ops, config, why, sizeof(why)),
		     -EINVAL);
	cr_assert_str_eq(why, "aimd: min is above max.");
	cr_assert_eq(weir_limit_from_text("aimd:min=x", &ops, config, why, sizeof(why)), -EINVAL);
	cr_assert(strstr(why, "min cannot be \"x\"") != NULL, "%s", why);
}

Test(params, an_overlong_name_is_no_limit)
{
	unsigned char config[WEIR_LIMIT_CONFIG_MAX];
	const struct weir_limit_ops *ops;
	char text[300];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	cr_assert_eq(weir_limit_from_text(text, &ops, config, why, sizeof(why)), -EINVAL);
	cr_assert_null(ops);
	cr_assert(strncmp(why, "There is no limit \"xxx", 22) == 0, "%s", why);
}

Test(params, a_sentence_is_cut_at_the_buffer_size)
{
	struct weir_vegas_config vegas = {.initial = 0};
	char small[8];

	cr_assert_eq(weir_limit_parse(&weir_vegas, &vegas, "gamma=1", small, sizeof(small)),
		     -EINVAL);
	cr_assert_eq(strlen(small), sizeof(small) - 1);
	cr_assert_eq(weir_limit_parse(&weir_vegas, &vegas, "gamma=1", NULL, 0), -EINVAL);
}

Test(params, an_overlong_item_is_refused)
{
	char text[1000];
	struct weir_vegas_config vegas = {.initial = 0};

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	cr_assert_eq(parse(&weir_vegas, &vegas, text), -EINVAL);
}

Test(params, the_locale_of_the_program_does_not_matter)
{
	struct weir_vegas_config vegas = {.initial = 0};

	if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL)
		cr_skip("no locale with a decimal comma here");
	cr_assert_eq(parse(&weir_vegas, &vegas, "smoothing=0.5"), 0, "%s", why);
	cr_assert_eq(vegas.smoothing, 0.5);
}

Test(params, zero_means_the_default)
{
	struct weir_gradient_config full;

	cr_assert_eq(weir_limit_complete(&weir_gradient, NULL, 0, &full, why, sizeof(why)), 0);
	cr_assert(full.initial == 50 && full.min == 1 && full.max == 1000);
	cr_assert(full.smoothing == 0.2 && full.tolerance == 2 && full.backoff == 0.9);
	cr_assert(full.queue.kind == WEIR_SCALE_SQRT && full.queue.k == 4);
	cr_assert_eq(full.probe, 1000);
}

Test(params, a_shorter_configuration_is_of_an_older_program)
{
	struct weir_gradient_config mine = {.initial = 33, .min = 2, .max = 999}, full;

	cr_assert_eq(weir_limit_complete(&weir_gradient, &mine,
					 offsetof(struct weir_gradient_config, max), &full, why,
					 sizeof(why)),
		     0);
	cr_assert(full.initial == 33 && full.min == 2 && full.max == 1000);
}

Test(params, a_scale_of_an_unknown_kind_is_refused)
{
	struct weir_gradient_config mine = {.initial = 33}, full;

	mine.queue.kind = (enum weir_scale_kind)77;
	cr_assert_eq(
		weir_limit_complete(&weir_gradient, &mine, sizeof(mine), &full, why, sizeof(why)),
		-EINVAL);
	cr_assert(strstr(why, "queue") != NULL, "%s", why);
}

static void reads_back(const char *text)
{
	char config[WEIR_LIMIT_CONFIG_MAX], again[WEIR_LIMIT_CONFIG_MAX];
	char full[WEIR_LIMIT_CONFIG_MAX], formatted[1000], cut[20];
	const struct weir_limit_ops *ops;
	struct weir_config c;
	struct weir_limiter *limiter;
	size_t length;

	weir_config_init(&c);
	cr_assert_eq(weir_limit_from_text(text, &c.limit, config, why, sizeof(why)), 0, "%s", why);
	c.limit_config = config;
	c.limit_config_size = c.limit->config_size;
	cr_assert_eq(weir_limiter_create(&c, &limiter), 0);
	length = weir_limiter_format(limiter, formatted, sizeof(formatted));
	cr_assert(length < sizeof(formatted) && strlen(formatted) == length);
	cr_assert_eq(weir_limiter_format(limiter, NULL, 0), length);
	cr_assert_eq(weir_limiter_format(limiter, cut, sizeof(cut)), length);
	cr_assert(strncmp(cut, formatted, strlen(cut)) == 0);
	weir_limiter_destroy(limiter);

	cr_assert_eq(weir_limit_from_text(formatted, &ops, again, why, sizeof(why)), 0, "%s: %s",
		     formatted, why);
	cr_assert_eq(ops, c.limit);
	cr_assert_eq(weir_limit_complete(ops, config, ops->config_size, full, NULL, 0), 0);
	cr_assert_arr_eq(full, again, ops->config_size, "%s", formatted);
}

Test(params, formatted_text_reads_back)
{
	const struct weir_limit_ops *ops;

	for (unsigned i = 0; (ops = weir_limit_at(i)) != NULL; i++)
		reads_back(ops->name);
	reads_back("vegas:initial=7,smoothing=0.1,alpha=percent:3:10,beta=log10plus:9,"
		   "increase=mul:1.07,decrease=sub_log10:2.5,probe=99");
	reads_back("vegas:alpha=const:1,beta=sqrt:4,increase=add:2,decrease=sub:0.3");
	reads_back("aimd:timeout=1234567ns");
	reads_back("aimd:timeout=1.5ms");
	reads_back("aimd:timeout=2m");
	reads_back("gradient:probe=never");
	reads_back("vegas:smoothing=0.123456789");
	reads_back("vegas:smoothing=0.12345678901234567");
}

/* A custom limit. */

static double own_init(void *state, const void *config, double random)
{
	(void)state;
	(void)config;
	(void)random;
	return 5;
}

static double own_update(void *state, const struct weir_window *w)
{
	(void)state;
	return w->limit + 1;
}

static const struct weir_limit_ops own = {
	.size = sizeof(struct weir_limit_ops),
	.name = "own",
	.init = own_init,
	.update = own_update,
};

Test(params, a_custom_limit_is_checked)
{
	static const struct weir_param stray = {"p", WEIR_PARAM_U32, 4000, 0, 1, "0", ""};
	struct weir_limit_ops ops;
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &ops;

#define REFUSED(field, value)                                                                      \
	do {                                                                                       \
		ops = own;                                                                         \
		ops.field = (value);                                                               \
		cr_assert_eq(weir_config_check(&config, why, sizeof(why)), -EINVAL, #field);       \
		cr_assert(why[0] != '\0');                                                         \
	} while (0)

	ops = own;
	cr_assert_eq(weir_config_check(&config, why, sizeof(why)), 0, "%s", why);
	REFUSED(size, 8);
	REFUSED(name, NULL);
	REFUSED(name, "");
	REFUSED(name, "a-name-far-too-long");
	REFUSED(init, NULL);
	REFUSED(update, NULL);
	REFUSED(state_size, WEIR_LIMIT_STATE_MAX + 1);
	REFUSED(config_size, WEIR_LIMIT_CONFIG_MAX + 1);
	REFUSED(param_count, 1);
	ops = own;
	ops.params = &stray;
	ops.param_count = 1;
	cr_assert_eq(weir_config_check(&config, why, sizeof(why)), -EINVAL);
	cr_assert_eq(weir_limit_complete(NULL, NULL, 0, &config, why, sizeof(why)), -EINVAL);
	cr_assert_str_eq(why, "The limit was built against another version.");
}

Test(params, a_custom_limits_parameters_are_checked)
{
	static const struct {
		struct weir_param param;
		const char *says;
	} bad[] = {
		{{NULL, WEIR_PARAM_U32, 0, 0, 1, "0", ""}, "parameter 0 is malformed"},
		{{"p", WEIR_PARAM_U32, 0, 0, 1, NULL, ""}, "parameter 0 is malformed"},
		{{"p", (enum weir_param_type)77, 0, 0, 1, "0", ""}, "parameter 0 is malformed"},
		{{"p", WEIR_PARAM_U32, 9, 0, 1, "0", ""}, "parameter 0 is malformed"},
		{{"p", WEIR_PARAM_DOUBLE, 4, 0, 1, "0", ""}, "parameter 0 is malformed"},
		{{"p", WEIR_PARAM_U32, 4, 0, 1, "none", ""}, "the default of p is malformed"},
		{{"p", WEIR_PARAM_U32, 4, 0, 1, "2", ""}, "p is 2, outside 0 to 1"},
	};
	struct weir_limit_ops ops = own;
	unsigned char full[8];

	ops.config_size = sizeof(full);
	ops.param_count = 1;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ops.params = &bad[i].param;
		cr_assert_eq(weir_limit_complete(&ops, NULL, 0, full, why, sizeof(why)), -EINVAL);
		cr_assert(strstr(why, bad[i].says) != NULL, "%zu: %s", i, why);
	}
}

static void own_observe(const void *state, double *numbers)
{
	(void)state;
	(void)numbers;
}

Test(params, a_custom_limits_numbers_are_checked)
{
	static const char *const too_many[WEIR_NUMBERS_MAX + 2] = {"a", "b", "c", "d", "e",
								   "f", "g", "h", "i"};
	struct weir_limit_ops ops = own;
	unsigned char full[8];

	ops.numbers = too_many + 1;
	cr_assert_eq(weir_limit_complete(&ops, NULL, 0, full, why, sizeof(why)), -EINVAL);
	cr_assert_str_eq(why, "own: numbers and observe go together.");
	ops.observe = own_observe;
	cr_assert_eq(weir_limit_complete(&ops, NULL, 0, full, why, sizeof(why)), 0, "%s", why);
	ops.numbers = too_many;
	cr_assert_eq(weir_limit_complete(&ops, NULL, 0, full, why, sizeof(why)), -EINVAL);
	cr_assert_str_eq(why, "own: it shows more than 8 numbers.");
	ops.numbers = NULL;
	cr_assert_eq(weir_limit_complete(&ops, NULL, 0, full, why, sizeof(why)), -EINVAL);
}
