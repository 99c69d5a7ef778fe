/*
 * meter.h - the limit over time, as far as windows tell. In memory of one process or of several.
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

/* From that time on the limit is so much. */
void meter_begin(struct limit_meter *meter, uint32_t limit, weir_time now);
void meter_end(struct limit_meter *meter);

/* It is so much from now on. */
void meter_set(struct limit_meter *meter, uint32_t limit);

/* For weir_observer.window, with the meter as its arg. */
void meter_window(void *arg, const struct weir_report *report);

/* The area up to now, which begins anew. */
double meter_take(struct limit_meter *meter);

#endif
