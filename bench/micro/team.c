/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * team.c - members are pinned to processors, in turn, so that none moves in the middle of a
 * measurement. They wait for each other before the start, asleep: spinning would take time from
 * members on the same processor.
 */
#include "team.h"

#include "alloc.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/base.h>

struct member {
	const struct job *job;
	pthread_barrier_t *ready;
	unsigned number;
	pthread_t thread;
	weir_dur took;
	uint64_t answer;
};

static void die(const char *what, int error)
{
	fprintf(stderr, "weir-micro: %s: %s\n", what, strerror(error));
	exit(EXIT_FAILURE);
}

static cpu_set_t processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		die("sched_getaffinity", errno);
	return set;
}

unsigned team_processors(void)
{
	cpu_set_t set = processors();

	return (unsigned)CPU_COUNT(&set);
}

/* The nth processor of the set, counted in a circle. */
static cpu_set_t processor(unsigned n)
{
	cpu_set_t all = processors(), one;
	unsigned skip = n % (unsigned)CPU_COUNT(&all);
	size_t cpu = 0;

	while (!CPU_ISSET(cpu, &all) || skip-- != 0)
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return one;
}

static void *member_main(void *arg)
{
	struct member *member = arg;
	weir_time start;

	pthread_barrier_wait(member->ready);
	alloc_watch(!member->job->allocates);
	start = weir_now();
	member->answer = member->job->run(member->job->arg, member->number);
	member->took = weir_now() - start;
	alloc_watch(false);
	return NULL;
}

static void member_start(struct member *member)
{
	pthread_attr_t attr;
	cpu_set_t set = processor(member->number);
	int error;

	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	error = pthread_create(&member->thread, &attr, member_main, member);
	if (error != 0)
		die("pthread_create", error);
	pthread_attr_destroy(&attr);
}

struct outcome team_run(const struct job *job, unsigned members)
{
	struct member team[TEAM_MAX];
	struct outcome outcome = {.ns = 0};
	pthread_barrier_t ready;

	pthread_barrier_init(&ready, NULL, members);
	for (unsigned i = 0; i < members; i++) {
		team[i] = (struct member){.job = job, .ready = &ready, .number = i};
		member_start(&team[i]);
	}
	for (unsigned i = 0; i < members; i++) {
		pthread_join(team[i].thread, NULL);
		outcome.ns += (double)team[i].took / members;
		outcome.sum += team[i].answer;
	}
	pthread_barrier_destroy(&ready);
	return outcome;
}
