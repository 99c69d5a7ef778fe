/*
 * sweep_command.h - a limit with many values of a parameter.
 */
#ifndef SWEEP_COMMAND_H
#define SWEEP_COMMAND_H

#include "choice.h"

/* Of steps, from 2. */
#define SWEEP_STEPS_MAX 100

/*
 * In place of each limit of the choice, that limit with every value of "alpha=1..6": so many steps,
 * or, if that is 0, as many as suit. False, after a message: there is something wrong with it.
 */
bool sweep_expand(struct choice *choice, const char *param, unsigned steps);

#endif
