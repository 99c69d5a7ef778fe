/* SPDX-License-Identifier: BSD-2-Clause */
#include "limits/common.h"
#include "ceiling.h"
#include "constants.h"

void ceiling_init(struct ceiling *c, double top)
{
	*c = (struct ceiling){.most = (float)top, .step = (float)LASTING};
}

void ceiling_raise(struct ceiling *c, double knee, double top)
{
	c->most = fminf(fmaxf(c->most, (float)knee) + c->step, (float)top);
	if (c->most >= (float)top)
		c->step = (float)LASTING;
}

bool ceiling_lower(struct ceiling *c, double most)
{
	if (most >= (double)c->most)
		return false;
	c->most = (float)most;
	return true;
}

/* If room has not reached the ceiling since it was lowered, this is still the same collapse. */
void ceiling_remember(struct ceiling *c, double most, double least)
{
	if (!ceiling_lower(c, most))
		return;
	if (c->met)
		c->step = fmaxf(c->step / 2, (float)least);
	c->met = false;
}

double ceiling_bound(struct ceiling *c, double knee, double room)
{
	const double left = (double)c->most - knee;

	c->met |= room >= left;
	return fmin(room, left);
}
