/*
 * scenario.h - what happens to limiters: who calls, what the server is like, and phases in which
 * load and server change. scenario_read.h reads one from a file.
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "draw.h"
#include "station.h"

#include <weir/limiter.h>

#define NAME_SIZE    32
#define TEXT_SIZE    200
#define PHASES_MAX   40
#define STATIONS_MAX 6
#define CLASSES_MAX  6
#define GROUPS_MAX   6
#define LIMITERS_MAX 256

/* How calls come. All but ARRIVALS_CLOSED do not care how the earlier ones fared. */
enum process {
	ARRIVALS_POISSON,
	ARRIVALS_REGULAR,     /* evenly spaced */
	ARRIVALS_BATCHES,     /* Poisson, batch at once on average, geometrically distributed */
	ARRIVALS_ONOFF,       /* Poisson at the rate while on, at low times the rate while off */
	ARRIVALS_SELFSIMILAR, /* Poisson, of sources that are on for long-tailed times */
	ARRIVALS_CLOSED,      /* clients that think, call, and think again */
	ARRIVALS_REPLAY,      /* at recorded times */
};

struct arrivals_model {
	enum process process;
	double batch;
	struct law on, off; /* nanoseconds */
	double low;
	struct law think; /* nanoseconds; of closed clients */

	weir_time *times; /* of a replay; the scenario owns them */
	size_t count;
};

/* What a caller does. */
struct client_model {
	weir_dur deadline; /* a call served later is served in vain; 0: never too late */
	weir_dur timeout;  /* after it the client gives up; 0: never */
	unsigned retries;  /* of a call that was refused, timed out or failed */
	struct law backoff;
	double backoff_growth; /* each further wait is so many times as long */
	bool stops_work;       /* the server learns that the client has gone */
};

/* A kind of calls. */
struct class_model {
	char name[NAME_SIZE];
	double share;
	struct law work[STATIONS_MAX]; /* nanoseconds; of mean 0: it passes the station by */
	double cancelled;              /* a part of its calls is given up by their caller, */
	struct law cancel_after;
	double failing; /* and a part fails before any work, after a while, */
	struct law fail_after;
	enum weir_outcome fail_as; /* and says so, or not */
	bool stream;               /* detached when admitted: its latency is no sample */
};

struct station_plan {
	char name[NAME_SIZE];
	struct station_model model;
	bool kept;       /* a call keeps its worker until it has left the last station */
	bool cpu;        /* its workers are processors: how busy they are can be seen */
	struct law work; /* of classes that say nothing else */
	struct law pause_every, pause_length; /* mean 0: no pauses */
};

/* Limiters that stand side by side before the one server; each gets an equal part of the calls. */
struct limiter_group {
	unsigned count;
	weir_time start;       /* they get none before */
	char limit[TEXT_SIZE]; /* of that limit; empty: of the limit that is tried out */
};

/* A stretch of time. What is changed in one phase is as ever in the next. */
struct phase {
	char name[NAME_SIZE];
	weir_dur length;
	bool warm_up;          /* it does not count in a score */
	double rate[2];        /* calls a second, from the beginning to the end */
	double background;     /* calls a second that pass no limiter */
	unsigned clients;      /* of closed arrivals */
	double slower[2];      /* work takes so many times as long, from the beginning to the end */
	unsigned station;      /* to which these apply: */
	double workers, speed; /* below 0: as ever */
	double mix[CLASSES_MAX];
	double failing; /* of all classes; below 0: as ever */
	bool restart;   /* new limiters take over; the old ones see their calls to the end */
};

struct scenario {
	char name[NAME_SIZE], family[NAME_SIZE], about[TEXT_SIZE];
	unsigned rounds; /* the phases are gone through so often */
	weir_dur sweep;  /* in the search for the oracle, phases are cut to this; 0: they are not */
	struct arrivals_model arrivals;
	struct client_model client;
	struct station_plan stations[STATIONS_MAX];
	struct class_model classes[CLASSES_MAX];
	struct limiter_group groups[GROUPS_MAX];
	struct phase phases[PHASES_MAX];
	unsigned station_count, class_count, group_count, phase_count;
	uint64_t digest; /* of all that is set in it, and of recorded times */
};

/* What a station is like in that phase. NULL: as ever. */
struct station_model scenario_station(const struct scenario *scenario, const struct phase *phase,
				      unsigned station);

/*
 * Calls a second that the server can do at most in that phase, in the mean and with no time lost;
 * infinite if no station has a bound. NULL: as ever.
 */
double scenario_capacity(const struct scenario *scenario, const struct phase *phase);

/* The load offered in that phase at most, as a part of the capacity; NaN: it cannot be said. */
double scenario_load(const struct scenario *scenario, const struct phase *phase);

/* Limiters in all. */
unsigned scenario_limiters(const struct scenario *scenario);

void scenario_free(struct scenario *scenario);

#endif
