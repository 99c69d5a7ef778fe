/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The built-in limits by name. This is the only file that lists them.
 */

#include <stddef.h>
#include <string.h>

#include <weir/limits.h>

static const struct weir_limit_ops *const builtin[] = {
	&weir_elastic, /* the first is the default */
	&weir_aimd,      &weir_bbr,      &weir_brpc,     &weir_cautious, &weir_codel,
	&weir_envoy,     &weir_failsafe, &weir_fixed,    &weir_gradient, &weir_gradient2,
	&weir_hillclimb, &weir_protego,  &weir_settable, &weir_vector,   &weir_vegas,
};

#define BUILTINS (sizeof(builtin) / sizeof(builtin[0]))

const struct weir_limit_ops *weir_limit_at(unsigned index)
{
	return index < BUILTINS ? builtin[index] : NULL;
}

const struct weir_limit_ops *weir_limit_by_name(const char *name)
{
	if (name == NULL)
		return builtin[0];
	for (size_t i = 0; i < BUILTINS; i++)
		if (strcmp(builtin[i]->name, name) == 0)
			return builtin[i];
	return NULL;
}
