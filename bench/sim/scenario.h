/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario.h - what limiters are put through: the callers, the server, and the phases in which load
 * and server change. scenario_read.h reads a scenario from a file.
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "draw.h"
#include "station.h"

#include <weir/limiter.h>

#define NAME_SIZE    32
#define TEXT_SIZE    256
#define PHASES_MAX   40
#define STATIONS_MAX 6
#define CLASSES_MAX  6
#define GROUPS_MAX   6
#define LIMITERS_MAX 256

/* How calls arrive. Only ARRIVALS_CLOSED depends on what became of earlier calls. */
enum process {
	ARRIVALS_POISSON,
	ARRIVALS_REGULAR,     /* evenly spaced */
	ARRIVALS_BATCHES,     /* Poisson batches; sizes are geometric with mean batch */
	ARRIVALS_ONOFF,       /* Poisson, at the full rate while on, at low times it while off */
	ARRIVALS_SELFSIMILAR, /* Poisson, from sources whose on times are heavy-tailed */
	ARRIVALS_CLOSED,      /* clients that think, call, and think again */
	ARRIVALS_REPLAY,      /* at recorded times */
};

struct arrivals_model {
	enum process process;
	double batch;
	struct law on, off; /* nanoseconds */
	double low;
	struct law think; /* nanoseconds; of closed clients */

	weir_time *times; /* of a replay; owned by the scenario */
	size_t count;
};

/* What a caller does. */
struct client_model {
	weir_dur deadline; /* a call served later does not count as good; 0: none */
	weir_dur timeout;  /* the client gives up after this; 0: never */
	unsigned retries;  /* at most, of a call that was refused, timed out or failed */
	struct law backoff;
	double backoff_growth; /* each further backoff is longer by this factor */
	bool stops_work;       /* the server stops working on a call given up by its client */
};

/* A class of calls. */
struct class_model {
	char name[NAME_SIZE];
	double share;
	struct law work[STATIONS_MAX]; /* nanoseconds; mean 0: skips the station */
	double cancelled;              /* fraction cancelled by the caller, */
	struct law cancel_after;       /* nanoseconds after admission */
	double failing;                /* fraction that fails before any work, */
	struct law fail_after;         /* nanoseconds after admission, */
	enum weir_outcome fail_as;     /* reported as this outcome */
	enum weir_outcome served_as;   /* what a call that is served is reported as */
	bool stream;                   /* detached when admitted: its latency is no sample */
};

struct station_plan {
	char name[NAME_SIZE];
	struct station_model model;
	bool kept;       /* a call occupies its worker until it leaves the last station */
	bool cpu;        /* its workers are processors, visible to the CPU gauge */
	struct law work; /* nanoseconds; default for classes that do not set it */
	struct law pause_every, pause_length; /* nanoseconds; mean 0: no pauses */
};

/* Limiters side by side in front of one server; each gets an equal share of the calls. */
struct limiter_group {
	unsigned count;
	weir_time start;       /* they get no calls before this */
	weir_dur clocks;       /* the most that the clock of one is ahead */
	char limit[TEXT_SIZE]; /* its configuration; empty: the limit under test */
};

/* A stretch of time. A change lasts for its phase only. */
struct phase {
	char name[NAME_SIZE];
	weir_dur length;
	bool warm_up;          /* not counted in a score */
	double rate[2];        /* calls a second, at the beginning and at the end */
	double background;     /* calls a second that bypass the limiters */
	unsigned clients;      /* of closed arrivals */
	double slower[2];      /* factor on all work, at the beginning and at the end */
	unsigned station;      /* index; workers and speed apply to it */
	double workers, speed; /* negative: unchanged */
	double mix[CLASSES_MAX];
	double failing; /* for all classes; negative: unchanged */
	bool restart;   /* new limiters take over; old ones finish their calls */
};

struct scenario {
	char name[NAME_SIZE], family[NAME_SIZE], about[TEXT_SIZE];
	unsigned rounds; /* number of passes through the phases */
	weir_dur sweep;  /* the search for the oracle cuts phases to this; 0: uncut */
	bool coarse;     /* that search takes large steps, of few calls */
	struct arrivals_model arrivals;
	struct client_model client;
	struct station_plan stations[STATIONS_MAX];
	struct class_model classes[CLASSES_MAX];
	struct limiter_group groups[GROUPS_MAX];
	struct phase phases[PHASES_MAX];
	unsigned station_count, class_count, group_count, phase_count;
	uint64_t digest; /* of all settings, and of recorded times */
};

/* The station as it is in the phase; phase NULL: without changes. */
struct station_model scenario_station(const struct scenario *scenario, const struct phase *phase,
				      unsigned station);

/*
 * The capacity of the server in the phase: calls a second in the mean, with no time lost. Infinite
 * if no station has a bound. Phase NULL: without changes.
 */
double scenario_capacity(const struct scenario *scenario, const struct phase *phase);

/* The highest load offered in the phase, as a fraction of the capacity; NaN if unknown. */
double scenario_load(const struct scenario *scenario, const struct phase *phase);

/* Whether the phase counts in a score: it is no warm-up, and some call can be served in it. */
bool scenario_counts(const struct scenario *scenario, unsigned phase);

/* Number of limiters in all groups. */
unsigned scenario_limiters(const struct scenario *scenario);

void scenario_free(struct scenario *scenario);

#endif
