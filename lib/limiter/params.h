/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters of limits by name. */
#ifndef WEIR_LIB_PARAMS_H
#define WEIR_LIB_PARAMS_H

#include <weir/limit.h>

/* NULL if the limit has no parameter of that name. */
const struct weir_param *param_by_name(const struct weir_limit_ops *ops, const char *name);

#endif
