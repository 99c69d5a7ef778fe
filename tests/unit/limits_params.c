/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_params.c - checks of every parameter in the table of every limit, so that
 * a new limit is tested as soon as weir_limit_at() returns it.
 */
#include "limits.h"

#include <math.h>
#include <stdio.h>

typedef void visit_fn(const struct weir_limit_ops *ops, const struct weir_param *param);

static void for_every_param(visit_fn *visit)
{
	const struct weir_limit_ops *ops;
	uint32_t p, visited = 0;
	unsigned i;

	for (i = 0; (ops = weir_limit_at(i)) != NULL; i++) {
		for (p = 0; p < ops->param_count; p++, visited++)
			visit(ops, &ops->params[p]);
	}
	cr_assert_geq(visited, 30, "the tables are empty");
}

static const char *format_of(enum weir_param_type type)
{
	switch (type) {
	case WEIR_PARAM_U32:
		return "%s=%.0f";
	case WEIR_PARAM_DOUBLE:
		return "%s=%.17g";
	case WEIR_PARAM_DUR:
		return "%s=%.0fns";
	case WEIR_PARAM_SCALE:
		return "%s=const:%.0f";
	case WEIR_PARAM_STEP:
		return "%s=add:%.17g";
	}
	cr_assert_fail("a type without a text form");
	return "";
}

static void write_item(char *text, size_t size, const struct weir_param *param, double number)
{
	snprintf(text, size, format_of(param->type), param->name, number);
}

static bool is_real(const struct weir_param *param)
{
	return param->type == WEIR_PARAM_DOUBLE || param->type == WEIR_PARAM_STEP;
}

/* The nearest value beyond an end of the range. */
static double beyond(const struct weir_param *param, double end, double towards)
{
	if (is_real(param))
		return nextafter(end, towards);
	/* A double of this size has no neighbour at a distance of one. */
	if (end > 1e15)
		return end * 1.01;
	return towards < 0 ? end - 1 : end + 1;
}

static int parse(const struct weir_limit_ops *ops, const char *text, char *why, size_t size)
{
	unsigned char config[WEIR_LIMIT_CONFIG_MAX] = {0};

	return weir_limit_parse(ops, config, text, why, size);
}

static void assert_text_refused(const struct weir_limit_ops *ops, const char *text)
{
	char why[200] = "";

	cr_assert_eq(parse(ops, text, why, sizeof(why)), -EINVAL, "%s: %s", ops->name, text);
	cr_assert_gt(strlen(why), strlen(ops->name) + 8, "%s: %s: \"%s\"", ops->name, text, why);
	cr_assert_eq(why[strlen(why) - 1], '.', "%s: %s: \"%s\"", ops->name, text, why);
}

static void accepts_the_ends_of_its_range(const struct weir_limit_ops *ops,
					  const struct weir_param *param)
{
	char text[100], why[200] = "";

	write_item(text, sizeof(text), param, param->min);
	cr_assert_eq(parse(ops, text, why, sizeof(why)), 0, "%s", why);
	write_item(text, sizeof(text), param, param->max);
	cr_assert_eq(parse(ops, text, why, sizeof(why)), 0, "%s", why);
}

Test(params, accept_the_ends_of_their_range)
{
	for_every_param(accepts_the_ends_of_its_range);
}

static void refuses_below_its_range(const struct weir_limit_ops *ops,
				    const struct weir_param *param)
{
	char text[100];

	write_item(text, sizeof(text), param, beyond(param, param->min, -INFINITY));
	assert_text_refused(ops, text);
}

Test(params, refuse_values_below_their_range)
{
	for_every_param(refuses_below_its_range);
}

static void refuses_above_its_range(const struct weir_limit_ops *ops,
				    const struct weir_param *param)
{
	char text[100];

	write_item(text, sizeof(text), param, beyond(param, param->max, INFINITY));
	assert_text_refused(ops, text);
}

Test(params, refuse_values_above_their_range)
{
	for_every_param(refuses_above_its_range);
}

static void refuses_text_that_is_no_number(const struct weir_limit_ops *ops,
					   const struct weir_param *param)
{
	static const char *const bad[] = {
		"",          "x",          "nan",
		"NaN",       "inf",        "-inf",
		"infinity",  "1x",         "1 ",
		"--1",       "const:",     "const:nan",
		"const:-1",  "log10:x",    "log10:1:2",
		"cube:4",    "percent:3",  "percent:3:x",
		"percent:",  "sqrt:1.5",   "add:",
		"add:nan",   "add:inf",    "sub_log10:inf",
		"mul:-inf",  "mul:1.02x",  "leap:1",
		"nanms",     "infs",       "5 parsecs",
		"-1s",       "ms",         "99999999999",
		"1e400",     "const:1e3",  "5sms",
		"0x",        "=1",         "never ever",
		"sqrt:4:4",  "add_log10:", "const:4294967296",
		"add:1e400",
	};
	char text[100];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "%s=%s", param->name, bad[i]);
		assert_text_refused(ops, text);
	}
}

Test(params, refuse_text_that_is_no_number)
{
	for_every_param(refuses_text_that_is_no_number);
}

static void put(const struct weir_param *param, void *config, double number)
{
	struct weir_step step = {.kind = WEIR_STEP_MUL, .by = number};
	void *field = (char *)config + param->offset;

	if (param->type == WEIR_PARAM_STEP)
		memcpy(field, &step, sizeof(step));
	else
		memcpy(field, &number, sizeof(number));
}

static void refuses_odd_reals(const struct weir_limit_ops *ops, const struct weir_param *param)
{
	const double odd[] = {(double)NAN, (double)INFINITY, -(double)INFINITY,
			      nextafter(param->min, -INFINITY), nextafter(param->max, INFINITY)};
	unsigned char config[WEIR_LIMIT_CONFIG_MAX] = {0}, out[WEIR_LIMIT_CONFIG_MAX];
	char why[200];
	size_t i;

	for (i = 0; is_real(param) && i < sizeof(odd) / sizeof(odd[0]); i++) {
		why[0] = '\0';
		put(param, config, odd[i]);
		cr_assert_eq(
			weir_limit_complete(ops, config, sizeof(config), out, why, sizeof(why)),
			-EINVAL, "%s: %s: %g", ops->name, param->name, odd[i]);
		cr_assert_neq(strstr(why, param->name), NULL, "\"%s\"", why);
	}
}

Test(params, refuse_odd_reals_in_a_configuration)
{
	for_every_param(refuses_odd_reals);
}

static void refuses_an_unknown_kind(const struct weir_limit_ops *ops,
				    const struct weir_param *param)
{
	const struct weir_scale scale = {.kind = (enum weir_scale_kind)99, .k = 1};
	const struct weir_step step = {.kind = (enum weir_step_kind)99, .by = 1};
	unsigned char config[WEIR_LIMIT_CONFIG_MAX] = {0}, out[WEIR_LIMIT_CONFIG_MAX];
	char why[200] = "";

	if (param->type == WEIR_PARAM_SCALE)
		memcpy(config + param->offset, &scale, sizeof(scale));
	else if (param->type == WEIR_PARAM_STEP)
		memcpy(config + param->offset, &step, sizeof(step));
	else
		return;
	cr_assert_eq(weir_limit_complete(ops, config, sizeof(config), out, why, sizeof(why)),
		     -EINVAL, "%s: %s", ops->name, param->name);
	cr_assert_neq(strstr(why, param->name), NULL, "\"%s\"", why);
}

Test(params, refuse_an_unknown_kind)
{
	for_every_param(refuses_an_unknown_kind);
}

static void has_the_default_it_names(const struct weir_limit_ops *ops,
				     const struct weir_param *param)
{
	unsigned char named[WEIR_LIMIT_CONFIG_MAX] = {0}, by_name[WEIR_LIMIT_CONFIG_MAX],
		      by_zero[WEIR_LIMIT_CONFIG_MAX];
	char text[100], why[200] = "";

	snprintf(text, sizeof(text), "%s=%s", param->name, param->def);
	cr_assert_eq(weir_limit_parse(ops, named, text, why, sizeof(why)), 0, "%s", why);
	cr_assert_eq(weir_limit_complete(ops, named, sizeof(named), by_name, why, sizeof(why)), 0,
		     "%s", why);
	cr_assert_eq(weir_limit_complete(ops, NULL, 0, by_zero, why, sizeof(why)), 0, "%s", why);
	cr_assert_arr_eq(by_name, by_zero, ops->config_size, "%s: %s", ops->name, param->name);
}

Test(params, have_the_defaults_they_name)
{
	for_every_param(has_the_default_it_names);
}

static void has_a_help_text(const struct weir_limit_ops *ops, const struct weir_param *param)
{
	cr_assert(param->help && param->help[0], "%s: %s", ops->name, param->name);
	cr_assert_leq(param->min, param->max, "%s: %s", ops->name, param->name);
}

Test(params, have_a_help_text)
{
	for_every_param(has_a_help_text);
}

Test(params, refuse_text_that_is_no_list)
{
	const struct weir_limit_ops *ops;
	unsigned i;

	for (i = 0; (ops = weir_limit_at(i)) != NULL; i++) {
		assert_text_refused(ops, "x");
		assert_text_refused(ops, "nosuch=1");
		assert_text_refused(ops, "=");
		assert_text_refused(ops, "initial");
		assert_text_refused(ops, ",");
	}
}

Test(params, an_empty_text_changes_nothing)
{
	struct weir_vegas_config config = {.initial = 3};

	cr_assert_eq(weir_limit_parse(&weir_vegas, &config, "", NULL, 0), 0);
	cr_assert_eq(config.initial, 3);
}

Test(params, are_set_up_to_the_first_error)
{
	struct weir_vegas_config config = {0};

	cr_assert_eq(weir_limit_parse(&weir_vegas, &config, "initial=3,max=x,probe=5", NULL, 0),
		     -EINVAL);
	cr_assert_eq(config.initial, 3);
	cr_assert_eq(config.max, 0);
	cr_assert_eq(config.probe, 0);
}

Test(params, accept_every_form_of_text)
{
	struct weir_vegas_config v = {0};
	struct weir_aimd_config a = {0};

	cr_assert_eq(weir_limit_parse(&weir_vegas, &v,
				      "alpha=const:2,beta=sqrt:8,threshold=percent:3:10,"
				      "increase=mul:1.02,decrease=sub:1.5",
				      NULL, 0),
		     0);
	cr_assert(v.alpha.kind == WEIR_SCALE_CONST && v.alpha.k == 2);
	cr_assert(v.beta.kind == WEIR_SCALE_SQRT && v.beta.k == 8);
	cr_assert(v.threshold.kind == WEIR_SCALE_PERCENT && v.threshold.k == 3 &&
		  v.threshold.percent == 10);
	cr_assert(v.increase.kind == WEIR_STEP_MUL && v.increase.by == 1.02);
	cr_assert(v.decrease.kind == WEIR_STEP_ADD && v.decrease.by == -1.5);

	cr_assert_eq(weir_limit_parse(&weir_vegas, &v, "alpha=log10plus:1,decrease=sub_log10:2",
				      NULL, 0),
		     0);
	cr_assert(v.alpha.kind == WEIR_SCALE_LOG10_PLUS && v.alpha.k == 1);
	cr_assert(v.decrease.kind == WEIR_STEP_ADD_LOG10 && v.decrease.by == -2);

	cr_assert_eq(weir_limit_parse(&weir_aimd, &a, "timeout=1.5s", NULL, 0), 0);
	cr_assert_eq(a.timeout, 1500 * WEIR_MS);
	cr_assert_eq(weir_limit_parse(&weir_aimd, &a, "timeout=20us", NULL, 0), 0);
	cr_assert_eq(a.timeout, 20 * WEIR_US);
	cr_assert_eq(weir_limit_parse(&weir_aimd, &a, "timeout=50000000ns", NULL, 0), 0);
	cr_assert_eq(a.timeout, 50 * WEIR_MS);
}

Test(params, accept_a_shorter_configuration_of_an_older_version)
{
	const struct weir_aimd_config given = {.initial = 7, .min = 6, .max = 5};
	struct weir_aimd_config out;

	/* The size covers initial and min only: the bad max is not read. */
	cr_assert_eq(weir_limit_complete(&weir_aimd, &given, offsetof(struct weir_aimd_config, max),
					 &out, NULL, 0),
		     0);
	cr_assert_eq(out.initial, 7);
	cr_assert_eq(out.min, 6);
	cr_assert_eq(out.max, 200);
}

Test(params, truncate_the_error_sentence_to_its_buffer)
{
	char why[8];

	memset(why, 'x', sizeof(why));
	cr_assert_eq(parse(&weir_vegas, "alpha=nonsense", why, 6), -EINVAL);
	cr_assert_eq(strlen(why), 5);
	cr_assert_eq(why[6], 'x');
	cr_assert_eq(parse(&weir_vegas, "alpha=nonsense", why, 0), -EINVAL);
	cr_assert_eq(parse(&weir_vegas, "alpha=nonsense", NULL, 0), -EINVAL);
}

Test(params, limits_are_found_by_name)
{
	const struct weir_limit_ops *ops;
	unsigned i;

	for (i = 0; (ops = weir_limit_at(i)) != NULL; i++) {
		cr_assert_eq(weir_limit_by_name(ops->name), ops);
		cr_assert_leq(strlen(ops->name), 15);
		cr_assert(ops->about && ops->about[0]);
	}
	cr_assert_eq(i, 16);
	cr_assert_eq(weir_limit_by_name(NULL), &weir_elastic);
	cr_assert_eq(weir_limit_by_name("Vegas"), NULL);
	cr_assert_eq(weir_limit_by_name(""), NULL);
}
