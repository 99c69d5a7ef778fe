/* SPDX-License-Identifier: BSD-2-Clause */
/* An algorithm and its parameters as text, such as lib/limiter/params.c reads. */

#include <weir/observe.h>

#include <inttypes.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/limiter/limiter.h"

/* As for snprintf(): text that does not fit still counts in length. */
struct text {
	char *at;
	size_t size, length;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *t, const char *format, ...)
{
	const bool full = t->length >= t->size;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(full ? NULL : t->at + t->length, full ? 0 : t->size - t->length, format,
		      args);
	va_end(args);
	t->length += n > 0 ? (size_t)n : 0;
}

/* The shortest text that is read as the same number. */
static void add_real(struct text *t, double real)
{
	char digits[32];

	for (int precision = 6; precision <= 17; precision++) {
		snprintf(digits, sizeof(digits), "%.*g", precision, real);
		if (strtod(digits, NULL) == real)
			break;
	}
	add(t, "%s", digits);
}

static void add_dur(struct text *t, weir_dur dur)
{
	static const struct {
		weir_dur ns;
		const char *name;
	} units[] = {{WEIR_S, "s"}, {WEIR_MS, "ms"}, {WEIR_US, "us"}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (dur < units[i].ns || dur % units[i].ns != 0)
			continue;
		add(t, "%" PRIu64 "%s", dur / units[i].ns, units[i].name);
		return;
	}
	add(t, "%" PRIu64 "ns", dur);
}

static void add_scale(struct text *t, const struct weir_scale *scale)
{
	static const char *const kinds[] = {
		[WEIR_SCALE_CONST] = "const",          [WEIR_SCALE_LOG10] = "log10",
		[WEIR_SCALE_LOG10_PLUS] = "log10plus", [WEIR_SCALE_SQRT] = "sqrt",
		[WEIR_SCALE_PERCENT] = "percent",
	};

	add(t, "%s:%" PRIu32, kinds[scale->kind], scale->k);
	if (scale->kind == WEIR_SCALE_PERCENT)
		add(t, ":%" PRIu32, scale->percent);
}

static void add_step(struct text *t, const struct weir_step *step)
{
	const bool down = step->kind != WEIR_STEP_MUL && step->by < 0;

	if (step->kind == WEIR_STEP_MUL)
		add(t, "mul:");
	else
		add(t, "%s%s:", down ? "sub" : "add", step->kind == WEIR_STEP_ADD ? "" : "_log10");
	add_real(t, down ? -step->by : step->by);
}

static void add_param(struct text *t, const struct weir_param *param, const char *config)
{
	union {
		uint32_t u32;
		double real;
		weir_dur dur;
		struct weir_scale scale;
		struct weir_step step;
	} value;
	const char *from = config + param->offset;

	switch (param->type) {
	case WEIR_PARAM_U32:
		memcpy(&value.u32, from, sizeof(value.u32));
		if (param->max == UINT32_MAX && value.u32 == UINT32_MAX)
			add(t, "never");
		else
			add(t, "%" PRIu32, value.u32);
		break;
	case WEIR_PARAM_DOUBLE:
		memcpy(&value.real, from, sizeof(value.real));
		add_real(t, value.real);
		break;
	case WEIR_PARAM_DUR:
		memcpy(&value.dur, from, sizeof(value.dur));
		add_dur(t, value.dur);
		break;
	case WEIR_PARAM_SCALE:
		memcpy(&value.scale, from, sizeof(value.scale));
		add_scale(t, &value.scale);
		break;
	case WEIR_PARAM_STEP:
		memcpy(&value.step, from, sizeof(value.step));
		add_step(t, &value.step);
		break;
	}
}

static void format_limit(const struct weir_limiter *l, struct text *t)
{
	add(t, "%s", l->ops->name);
	for (uint32_t i = 0; i < l->ops->param_count; i++) {
		add(t, "%c%s=", i == 0 ? ':' : ',', l->ops->params[i].name);
		add_param(t, &l->ops->params[i], (const char *)l->limit_config);
	}
}

size_t weir_limiter_format(const struct weir_limiter *l, char *text, size_t size)
{
	struct text t = {.at = text, .size = size};
	locale_t c, before;

	if (size > 0)
		*text = '\0';
	if (l->ops == NULL)
		return 0;
	/* lib/limiter/params.c does not accept a decimal comma. */
	c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	before = c != (locale_t)0 ? uselocale(c) : (locale_t)0;
	format_limit(l, &t);
	if (c != (locale_t)0) {
		uselocale(before);
		freelocale(c);
	}
	return t.length;
}
