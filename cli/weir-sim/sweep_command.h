/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sweep_command.h - replace a limit by that limit with several values of a parameter.
 */
#ifndef SWEEP_COMMAND_H
#define SWEEP_COMMAND_H

#include "choice.h"

/* The most steps; the least are 2. */
#define SWEEP_STEPS_MAX 100

/*
 * Replace each limit of the choice by that limit with every value of a range such as "alpha=1..6",
 * in the given number of steps (0: chosen to fit the range). False, after a message, if param is
 * not valid.
 */
bool sweep_expand(struct choice *choice, const char *param, unsigned steps);

#endif
