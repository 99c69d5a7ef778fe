/*
 * scenario.h - what happens to the limiter: phases of load and of capacity.
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "draw.h"

#include <weir/base.h>

#define PHASES_MAX 4

/* A stretch of time with a load and a server. */
struct phase {
	const char *name; /* NULL ends the list */
	weir_dur length;
	double rate;      /* calls a second */
	unsigned workers; /* of the server */
	double slowness;  /* work takes this many times as long */
};

struct scenario {
	const char *name, *about;
	enum law_kind gaps; /* between arrivals */
	struct law work;    /* of a call, in nanoseconds */
	weir_dur deadline;  /* a call served later is served in vain */
	weir_dur timeout;   /* after it the client gives up, which is a drop; 0: never */
	unsigned rounds;    /* the phases are gone through so often */
	struct phase phases[PHASES_MAX + 1];
};

/* The scenarios by index from 0, NULL past the last; and by name, NULL if there is none. */
const struct scenario *scenario_at(unsigned index);
const struct scenario *scenario_by_name(const char *name);

#endif
