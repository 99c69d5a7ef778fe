/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * meter.h - integrate the limit over time, as seen at the ends of windows. A meter may be in memory
 * shared by processes.
 */
#ifndef METER_H
#define METER_H

#include <pthread.h>
#include <weir/weir.h>

struct limit_meter {
	pthread_mutex_t lock;
	uint32_t limit, highest;
	weir_time since;
	double area; /* limit times nanoseconds, up to since */
};

/* Start with the given limit at time now. */
void meter_begin(struct limit_meter *meter, uint32_t limit, weir_time now);
void meter_end(struct limit_meter *meter);

/* The limit changes now. */
void meter_set(struct limit_meter *meter, uint32_t limit);

/* A weir_observer.window callback; arg is the meter. */
void meter_window(void *arg, const struct weir_report *report);

/* Return the area up to now, and reset it. */
double meter_take(struct limit_meter *meter);

#endif
