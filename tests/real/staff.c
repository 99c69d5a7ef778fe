/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A staff finishes all tasks, in order, and none before its work can be done.
 */
#include "staff.h"

#include "../stress/check.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define TASKS 60
#define WORK  (2 * WEIR_MS)

struct order {
	struct task task; /* must be the first member */
	unsigned number;
	struct book *book;
};

struct book {
	struct order orders[TASKS];
	weir_time began;
	atomic_uint done;
};

static const struct station_model one_worker = {.workers = 1, .speed = 1};

static void book_open(struct book *book)
{
	memset(book, 0, sizeof(*book));
	for (unsigned i = 0; i < TASKS; i++) {
		book->orders[i].number = i;
		book->orders[i].book = book;
		book->orders[i].task.work = (double)WORK;
	}
	book->began = weir_now();
}

static void submit_all(struct staff *staff, struct book *book)
{
	for (unsigned i = 0; i < TASKS; i++)
		staff_submit(staff, &book->orders[i].task, weir_now());
}

/* One worker: the nth task ends after the work of n tasks. */
static void done_in_line(void *arg, struct task *task, unsigned member)
{
	struct book *book = arg;
	const struct order *order = (const struct order *)task;
	unsigned before = atomic_fetch_add_explicit(&book->done, 1, memory_order_relaxed);

	CHECK(member == 0);
	CHECK(order->number == before);
	CHECK(weir_now() >= book->began + (before + 1) * WORK);
}

/* The same with several threads: this one is delayed, so that another takes the next task. */
static void done_at_that_pace(void *arg, struct task *task, unsigned member)
{
	struct book *book = arg;
	unsigned before = atomic_fetch_add_explicit(&book->done, 1, memory_order_relaxed);

	(void)task;
	(void)member;
	CHECK(weir_now() >= book->began + (before + 1) * WORK);
	nanosleep(&(struct timespec){.tv_nsec = WORK / 4}, NULL);
}

static void done_after_its_work(void *arg, struct task *task, unsigned member)
{
	struct book *book = arg;

	(void)task;
	(void)member;
	atomic_fetch_add_explicit(&book->done, 1, memory_order_relaxed);
	CHECK(weir_now() >= book->began + WORK);
}

static void one_after_the_other(void)
{
	struct book book;
	struct staff staff;
	struct tally lateness = {.length = 0};

	book_open(&book);
	staff_start(&staff, &one_worker, 1, done_in_line, &book);
	submit_all(&staff, &book);
	staff_end(&staff, &lateness);
	CHECK(atomic_load(&book.done) == TASKS);
	CHECK(lateness.waits == TASKS);
}

/* After a long idle time, a task must not begin in the past. */
static void one_worker_of_many_threads(void)
{
	const struct station_model model = {.workers = 12, .speed = 1};
	struct book book;
	struct staff staff;
	struct tally lateness = {.length = 0};

	book_open(&book);
	staff_start(&staff, &model, 12, done_at_that_pace, &book);
	staff_change(&staff, 1, 1);
	submit_all(&staff, &book);
	while (atomic_load(&book.done) < TASKS) {
		staff_change(&staff, 1, 1); /* wakes all threads */
		nanosleep(&(struct timespec){.tv_nsec = WORK / 8}, NULL);
	}
	staff_end(&staff, &lateness);
}

/* Twelve threads, of which more and more may work, and then none for a while. */
static void as_the_number_of_workers_changes(void)
{
	struct book book;
	struct staff staff;
	struct tally lateness = {.length = 0};

	book_open(&book);
	staff_start(&staff, &one_worker, 12, done_after_its_work, &book);
	submit_all(&staff, &book);
	staff_change(&staff, 3, 1);
	staff_change(&staff, 12, 1);
	staff_change(&staff, 0, 1);
	staff_change(&staff, 2, 1);
	staff_end(&staff, &lateness);
	CHECK(atomic_load(&book.done) == TASKS);
}

/* The clock stops for as long as a task has work, which adds to its duration. */
static void as_the_speed_changes(enum discipline discipline)
{
	const struct station_model model = {.workers = 4, .speed = 1, .discipline = discipline};
	struct book book;
	struct staff staff;
	struct tally lateness = {.length = 0};
	weir_time stopped;

	book_open(&book);
	staff_start(&staff, &model, discipline == STATION_DELAY ? 1 : 4, done_after_its_work,
		    &book);
	staff_change(&staff, 4, 0);
	submit_all(&staff, &book);
	for (stopped = weir_now(); weir_now() < stopped + WORK;)
		CHECK(atomic_load(&book.done) == 0);
	book.began = weir_now();
	staff_change(&staff, 4, 1);
	staff_end(&staff, &lateness);
	CHECK(atomic_load(&book.done) == TASKS);
}

int main(void)
{
	one_after_the_other();
	one_worker_of_many_threads();
	as_the_number_of_workers_changes();
	as_the_speed_changes(STATION_FIFO);
	as_the_speed_changes(STATION_DELAY);
	return 0;
}
