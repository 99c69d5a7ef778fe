/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters of limits: defaults, ranges and text, all from a limit's table.
 *
 * So a limit never sees a value that is missing, out of range or not a number, and its parameters
 * are described in one place.
 */

#include "lib/limiter/params.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/limits.h>

#include "lib/base/explain.h"

/* The longest name=value in a text, in bytes. */
#define ITEM_MAX 128

/* The names of all limits in a sentence, in bytes: each has up to 15 characters, and a comma. */
#define NAMES_MAX 512

/* A value of any type, and the number in it that has a range. */
struct value {
	union {
		uint32_t u32;
		double real;
		weir_dur dur;
		struct weir_scale scale;
		struct weir_step step;
	};
	double number;
	bool set; /* false: use the default */
};

static size_t size_of(enum weir_param_type type)
{
	switch (type) {
	case WEIR_PARAM_U32:
		return sizeof(uint32_t);
	case WEIR_PARAM_DOUBLE:
		return sizeof(double);
	case WEIR_PARAM_DUR:
		return sizeof(weir_dur);
	case WEIR_PARAM_SCALE:
		return sizeof(struct weir_scale);
	case WEIR_PARAM_STEP:
		return sizeof(struct weir_step);
	}
	return 0;
}

/* Parsed in the C locale: a decimal comma of the program's locale must not change the defaults. */
static bool read_real(const char *text, const char **end, double *real)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	char *stop;

	if (c == (locale_t)0)
		return false;
	*real = strtod_l(text, &stop, c);
	freelocale(c);
	*end = stop;
	return stop != text && !isnan(*real);
}

static bool read_u32(const char *text, const char **end, uint32_t *number)
{
	char *stop;
	unsigned long long wide;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	wide = strtoull(text, &stop, 10);
	*end = stop;
	*number = (uint32_t)wide;
	return errno == 0 && wide <= UINT32_MAX;
}

static bool parse_dur(const char *text, weir_dur *dur)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}};
	const char *unit;
	double real;

	if (!read_real(text, &unit, &real) || real < 0)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(unit, units[i].name) != 0 || real * units[i].ns > 1e18)
			continue;
		*dur = (weir_dur)(real * units[i].ns);
		return true;
	}
	return false;
}

static bool skip(const char **text, const char *prefix)
{
	size_t length = strlen(prefix);

	if (strncmp(*text, prefix, length) != 0)
		return false;
	*text += length;
	return true;
}

static bool parse_scale(const char *text, struct weir_scale *scale)
{
	static const struct {
		const char *prefix;
		enum weir_scale_kind kind;
	} kinds[] = {
		{"const:", WEIR_SCALE_CONST},          {"log10:", WEIR_SCALE_LOG10},
		{"log10plus:", WEIR_SCALE_LOG10_PLUS}, {"sqrt:", WEIR_SCALE_SQRT},
		{"percent:", WEIR_SCALE_PERCENT},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!skip(&text, kinds[i].prefix))
			continue;
		*scale = (struct weir_scale){.kind = kinds[i].kind};
		if (!read_u32(text, &text, &scale->k))
			return false;
		if (scale->kind == WEIR_SCALE_PERCENT &&
		    (!skip(&text, ":") || !read_u32(text, &text, &scale->percent)))
			return false;
		return *text == '\0';
	}
	return false;
}

static bool parse_step(const char *text, struct weir_step *step)
{
	static const struct {
		const char *prefix;
		enum weir_step_kind kind;
		double sign;
	} kinds[] = {
		{"add:", WEIR_STEP_ADD, 1},
		{"sub:", WEIR_STEP_ADD, -1},
		{"add_log10:", WEIR_STEP_ADD_LOG10, 1},
		{"sub_log10:", WEIR_STEP_ADD_LOG10, -1},
		{"mul:", WEIR_STEP_MUL, 1},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!skip(&text, kinds[i].prefix))
			continue;
		step->kind = kinds[i].kind;
		if (!read_real(text, &text, &step->by) || *text != '\0')
			return false;
		step->by *= kinds[i].sign;
		return true;
	}
	return false;
}

static bool parse_value(const struct weir_param *param, const char *text, struct value *value)
{
	const char *end = "";
	bool ok = false;

	*value = (struct value){.set = true};
	switch (param->type) {
	case WEIR_PARAM_U32:
		if (param->max == UINT32_MAX && strcmp(text, "never") == 0) {
			value->u32 = UINT32_MAX;
			ok = true;
		} else {
			ok = read_u32(text, &end, &value->u32);
		}
		value->number = value->u32;
		break;
	case WEIR_PARAM_DOUBLE:
		ok = read_real(text, &end, &value->real);
		value->number = value->real;
		break;
	case WEIR_PARAM_DUR:
		ok = parse_dur(text, &value->dur);
		value->number = (double)value->dur;
		break;
	case WEIR_PARAM_SCALE:
		ok = parse_scale(text, &value->scale);
		value->number = value->scale.k;
		break;
	case WEIR_PARAM_STEP:
		ok = parse_step(text, &value->step);
		value->number = value->step.by;
		break;
	}
	return ok && *end == '\0';
}

/* Load a value from the program's configuration. False: an unknown kind. */
static bool load_value(const struct weir_param *param, const void *config, struct value *value)
{
	*value = (struct value){.set = false};
	memcpy(value, (const char *)config + param->offset, size_of(param->type));

	switch (param->type) {
	case WEIR_PARAM_U32:
		value->number = value->u32;
		value->set = value->u32 != 0;
		return true;
	case WEIR_PARAM_DOUBLE:
		value->number = value->real;
		value->set = !(value->real == 0);
		return true;
	case WEIR_PARAM_DUR:
		value->number = (double)value->dur;
		value->set = value->dur != 0;
		return true;
	case WEIR_PARAM_SCALE:
		value->number = value->scale.k;
		value->set = value->scale.kind != WEIR_SCALE_DEFAULT;
		return (unsigned)value->scale.kind <= WEIR_SCALE_PERCENT;
	case WEIR_PARAM_STEP:
		value->number = value->step.by;
		value->set = value->step.kind != WEIR_STEP_DEFAULT;
		return (unsigned)value->step.kind <= WEIR_STEP_MUL;
	}
	return false;
}

static void store_value(const struct weir_param *param, const struct value *value, void *config)
{
	memcpy((char *)config + param->offset, value, size_of(param->type));
}

/* Written so that NaN is out of range. */
static bool in_range(const struct weir_param *param, const struct value *value)
{
	return value->number >= param->min && value->number <= param->max;
}

static int refuse_range(const struct weir_limit_ops *ops, const struct weir_param *param,
			double number, char *why, size_t why_size)
{
	return refuse(why, why_size, "%s: %s is %.10g, outside %.10g to %.10g.", ops->name,
		      param->name, number, param->min, param->max);
}

static bool shows_too_much(const char *const *numbers)
{
	uint32_t count = 0;

	while (numbers != NULL && count <= WEIR_NUMBERS_MAX && numbers[count] != NULL)
		count++;
	return count > WEIR_NUMBERS_MAX;
}

/* A limit supplied by the program may itself be wrong. */
static int check_ops(const struct weir_limit_ops *ops, char *why, size_t why_size)
{
	if (ops == NULL || ops->size < sizeof(*ops))
		return refuse(why, why_size, "The limit was built against another version.");
	if (ops->name == NULL || ops->name[0] == '\0' || strlen(ops->name) > 15)
		return refuse(why, why_size, "The limit has no name of 1 to 15 characters.");
	if (ops->init == NULL || ops->update == NULL)
		return refuse(why, why_size, "%s: init or update is missing.", ops->name);
	if (ops->state_size > WEIR_LIMIT_STATE_MAX || ops->config_size > WEIR_LIMIT_CONFIG_MAX)
		return refuse(why, why_size, "%s: its state or configuration is too large.",
			      ops->name);
	if ((ops->numbers == NULL) != (ops->observe == NULL))
		return refuse(why, why_size, "%s: numbers and observe go together.", ops->name);
	if (shows_too_much(ops->numbers))
		return refuse(why, why_size, "%s: it shows more than %d numbers.", ops->name,
			      WEIR_NUMBERS_MAX);
	if (ops->param_count > 0 && ops->params == NULL)
		return refuse(why, why_size, "%s: its parameters are missing.", ops->name);
	for (uint32_t i = 0; i < ops->param_count; i++) {
		const struct weir_param *param = &ops->params[i];
		size_t size = size_of(param->type);

		if (param->name == NULL || param->def == NULL || size == 0 ||
		    param->offset > ops->config_size || size > ops->config_size - param->offset)
			return refuse(why, why_size, "%s: parameter %u is malformed.", ops->name,
				      (unsigned)i);
	}
	return 0;
}

int weir_limit_complete(const struct weir_limit_ops *ops, const void *config, size_t size,
			void *out, char *why, size_t why_size)
{
	const char *wrong;
	struct value value;
	int r = check_ops(ops, why, why_size);

	if (r != 0)
		return r;
	memset(out, 0, ops->config_size);
	if (config != NULL)
		memcpy(out, config, size < ops->config_size ? size : ops->config_size);

	for (uint32_t i = 0; i < ops->param_count; i++) {
		const struct weir_param *param = &ops->params[i];

		if (!load_value(param, out, &value))
			return refuse(why, why_size, "%s: %s is of an unknown kind.", ops->name,
				      param->name);
		if (!value.set && !parse_value(param, param->def, &value))
			return refuse(why, why_size, "%s: the default of %s is malformed.",
				      ops->name, param->name);
		if (!in_range(param, &value))
			return refuse_range(ops, param, value.number, why, why_size);
		store_value(param, &value, out);
	}
	wrong = ops->check != NULL ? ops->check(out) : NULL;
	return wrong == NULL ? 0 : refuse(why, why_size, "%s: %s.", ops->name, wrong);
}

const struct weir_param *param_by_name(const struct weir_limit_ops *ops, const char *name)
{
	for (uint32_t i = 0; i < ops->param_count; i++)
		if (strcmp(ops->params[i].name, name) == 0)
			return &ops->params[i];
	return NULL;
}

static int set_by_name(const struct weir_limit_ops *ops, void *config, char *item, char *why,
		       size_t why_size)
{
	char *text = strchr(item, '=');
	const struct weir_param *param;
	struct value value;

	if (text == NULL)
		return refuse(why, why_size, "%s: \"%s\" is not name=value.", ops->name, item);
	*text++ = '\0';
	param = param_by_name(ops, item);
	if (param == NULL)
		return refuse(why, why_size, "%s: it has no parameter \"%s\".", ops->name, item);
	if (!parse_value(param, text, &value))
		return refuse(why, why_size, "%s: %s cannot be \"%s\"; its default is %s.",
			      ops->name, item, text, param->def);
	if (!in_range(param, &value))
		return refuse_range(ops, param, value.number, why, why_size);
	store_value(param, &value, config);
	return 0;
}

int weir_limit_parse(const struct weir_limit_ops *ops, void *config, const char *text, char *why,
		     size_t why_size)
{
	char item[ITEM_MAX];
	int r = check_ops(ops, why, why_size);

	while (r == 0 && *text != '\0') {
		size_t length = strcspn(text, ",");

		if (length >= sizeof(item))
			return refuse(why, why_size, "%s: \"%.20s...\" is too long.", ops->name,
				      text);
		memcpy(item, text, length);
		item[length] = '\0';
		r = set_by_name(ops, config, item, why, why_size);
		text += length + (text[length] == ',');
	}
	return r;
}

/* Lists the known names. */
static int refuse_name(const char *text, size_t length, char *why, size_t why_size)
{
	char names[NAMES_MAX] = "";
	const struct weir_limit_ops *ops;

	for (unsigned i = 0; (ops = weir_limit_at(i)) != NULL; i++) {
		size_t used = strlen(names);

		snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "", ops->name);
	}
	return refuse(why, why_size, "There is no limit \"%.*s\"; there are %s.", (int)length, text,
		      names);
}

int weir_limit_from_text(const char *text, const struct weir_limit_ops **ops, void *config,
			 char *why, size_t why_size)
{
	unsigned char full[WEIR_LIMIT_CONFIG_MAX];
	size_t length = strcspn(text, ":");
	char name[ITEM_MAX];
	int r;

	*ops = NULL;
	if (length < sizeof(name)) {
		memcpy(name, text, length);
		name[length] = '\0';
		*ops = weir_limit_by_name(name);
	}
	if (*ops == NULL)
		return refuse_name(text, length < ITEM_MAX ? length : ITEM_MAX, why, why_size);

	memset(config, 0, WEIR_LIMIT_CONFIG_MAX);
	text += length + (text[length] == ':');
	r = weir_limit_parse(*ops, config, text, why, why_size);
	if (r != 0)
		return r;
	return weir_limit_complete(*ops, config, WEIR_LIMIT_CONFIG_MAX, full, why, why_size);
}
