/* SPDX-License-Identifier: BSD-2-Clause */
#include "meter.h"

void meter_begin(struct limit_meter *meter, uint32_t limit, weir_time now)
{
	pthread_mutexattr_t attr;

	*meter = (struct limit_meter){.limit = limit, .highest = limit, .since = now};
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&meter->lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

void meter_end(struct limit_meter *meter)
{
	pthread_mutex_destroy(&meter->lock);
}

/* Add the limit up to now to the area. Under the lock. */
static void move(struct limit_meter *meter, uint32_t limit)
{
	weir_time now = weir_now();

	meter->area += meter->limit * (double)(int64_t)(now - meter->since);
	meter->since = now;
	meter->limit = limit;
	if (limit > meter->highest)
		meter->highest = limit;
}

void meter_set(struct limit_meter *meter, uint32_t limit)
{
	pthread_mutex_lock(&meter->lock);
	move(meter, limit);
	pthread_mutex_unlock(&meter->lock);
}

void meter_window(void *arg, const struct weir_report *report)
{
	meter_set(arg, report->limit);
}

double meter_take(struct limit_meter *meter)
{
	double area;

	pthread_mutex_lock(&meter->lock);
	move(meter, meter->limit);
	area = meter->area;
	meter->area = 0;
	pthread_mutex_unlock(&meter->lock);
	return area;
}
