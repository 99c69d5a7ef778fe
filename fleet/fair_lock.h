/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock that a thread cannot take again and again while another one waits for it.
 *
 * These locks are held while a store is asked, which may take as long as its timeout. A thread that
 * asks again at once would take an ordinary mutex before the thread that its release woke, every
 * time: the others would wait for as long as the store does not answer.
 *
 * The thread that is next holds `turn` while it waits for `held`; all others wait for `turn`. A
 * thread that was woken may find `turn` taken again, but only until it runs.
 */
#ifndef WEIR_FLEET_FAIR_LOCK_H
#define WEIR_FLEET_FAIR_LOCK_H

#include <pthread.h>

struct fair_lock {
	pthread_mutex_t turn;
	pthread_mutex_t held; /* also for waiting on a condition, after which it is not fair */
};

static inline void fair_lock_init(struct fair_lock *lock)
{
	pthread_mutex_init(&lock->turn, NULL);
	pthread_mutex_init(&lock->held, NULL);
}

static inline void fair_lock_destroy(struct fair_lock *lock)
{
	pthread_mutex_destroy(&lock->turn);
	pthread_mutex_destroy(&lock->held);
}

static inline void fair_lock_take(struct fair_lock *lock)
{
	pthread_mutex_lock(&lock->turn);
	pthread_mutex_lock(&lock->held);
	pthread_mutex_unlock(&lock->turn);
}

static inline void fair_lock_release(struct fair_lock *lock)
{
	pthread_mutex_unlock(&lock->held);
}

/* Let those in that already wait. */
static inline void fair_lock_yield(struct fair_lock *lock)
{
	fair_lock_release(lock);
	fair_lock_take(lock);
}

#endif
