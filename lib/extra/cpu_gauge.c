/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CPU gauge: where the numbers come from, and the thread that reads them.
 *
 * word   written by                 order    pairs with
 * -----  -------------------------  -------  --------------------------
 * busy   the gauge's thread: store  relaxed  nothing: a number
 *
 * Everything else belongs to the thread from its start to its end, which its creation and its join
 * order, except the semaphore that ends it.
 *
 * For a control group, usage counts the CPU time used since its creation, the clock gives the time
 * elapsed, and a quota says how many CPUs' time the group may use. Quotas may stand at any level of
 * the path. The lowest counts, and everything in that group uses it. /proc/stat has both times in
 * ticks. In either case two readings make a measurement of the time between them.
 */

#include <weir/cpu.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cancel.h"
#include "lib/base/clock.h"
#include "lib/extra/cpu_gauge.h"

#define INTERVAL          (500 * WEIR_MS)
#define INTERVAL_MIN      (10 * WEIR_MS)
#define INTERVAL_MAX      (60 * WEIR_S)
#define TIME_CONSTANT     (9748 * WEIR_MS) /* 500 ms / -ln 0.95 */
#define TIME_CONSTANT_MAX (3600 * WEIR_S)

/* CPUs in a mask: as many as Linux can be built for. */
#define MASK_SETS 8
#define MASK_CPUS ((size_t)MASK_SETS * CPU_SETSIZE)

/* Bytes read of a file in a control group, and of a line of /proc. */
#define TEXT_MAX 4096

/* Size of a path below the root, in bytes. */
#define PATH_SIZE (CPU_ROOT_MAX + CPU_GROUP_MAX + 64)

struct weir_cpu {
	struct weir_gauge gauge; /* must be first: read_gauge() casts it */
	_Atomic uint64_t busy;   /* a double's bits */
	weir_dur interval;
	pid_t maker;
	pthread_t thread;
	sem_t end;
	struct cpu_meter meter;
};

static FILE *open_below(const char *root, const char *folder, const char *group, const char *name)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s/%s%s/%s", root, folder, group, name);
	return fopen(path, "re");
}

/* After fgets() has returned no line: 0 at the end of the file, or a negative errno. */
static int read_error(FILE *file)
{
	return ferror(file) != 0 ? -errno : 0;
}

/* Read a small file. Returns 0; -ENOENT if there is none. */
static int read_group_file(const char *root, const char *group, const char *name, char *text)
{
	FILE *file = open_below(root, "sys/fs/cgroup", group, name);
	size_t size;
	int error;

	if (file == NULL)
		return -errno;
	errno = 0;
	size = fread(text, 1, TEXT_MAX - 1, file);
	error = ferror(file) != 0 ? -errno : 0;
	fclose(file);
	text[size] = '\0';
	/* The group was removed meanwhile. */
	return error == -ENODEV ? -ENOENT : error;
}

/* Read the number at *at, and advance *at past it. */
static bool take_number(const char **at, uint64_t *number)
{
	const char *text = *at + strspn(*at, " \t");
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &end, 10);
	*at = end;
	return errno == 0;
}

/* The group of a line "0::/path". A path with ".." is above what is visible from here. */
static int take_group(char *line, char *group)
{
	char *path = line + strlen("0::"), *end = strchr(line, '\n');

	if (end == NULL || end - path >= CPU_GROUP_MAX)
		return -ENAMETOOLONG;
	*end = '\0';
	if (strstr(path, "/..") != NULL)
		return -ENOENT;
	path = strcmp(path, "/") != 0 ? path : end;
	memcpy(group, path, strlen(path) + 1);
	return 0;
}

/* The process's control group; "" for the root group. -ENOENT: there is none of version 2. */
static int find_group(const char *root, char *group)
{
	FILE *file = open_below(root, "proc", "", "self/cgroup");
	char line[TEXT_MAX];
	int error = 0;
	bool found = false;

	if (file == NULL)
		return -errno;
	while (!found && fgets(line, sizeof(line), file) != NULL)
		found = strncmp(line, "0::/", 4) == 0;
	error = found ? take_group(line, group) : read_error(file);
	fclose(file);
	return found || error != 0 ? error : -ENOENT;
}

/* The number of CPUs whose time the group itself is granted. Returns 0; -ENOENT: no limit. */
static int read_quota(const char *root, const char *group, double *share)
{
	char text[TEXT_MAX];
	const char *at = text;
	uint64_t quota, period;
	int error = read_group_file(root, group, "cpu.max", text);

	if (error != 0)
		return error;
	if (strncmp(text, "max ", 4) == 0)
		return -ENOENT;
	if (!take_number(&at, &quota) || !take_number(&at, &period) || quota == 0 || period == 0)
		return -EBADMSG;
	*share = (double)quota / (double)period;
	/* A quota above all CPUs is never used up. */
	return *share > (double)sysconf(_SC_NPROCESSORS_ONLN) ? -ENOENT : 0;
}

static int read_usage(const char *root, struct cpu_reading *reading)
{
	static const char key[] = "usage_usec ";
	char text[TEXT_MAX];
	const char *at;
	int error = read_group_file(root, reading->group, "cpu.stat", text);

	if (error != 0)
		return error;
	at = strncmp(text, key, strlen(key)) == 0 ? text : strstr(text, "\nusage_usec ");
	if (at == NULL)
		return -EBADMSG;
	at = strchr(at, ' ');
	return take_number(&at, &reading->used) ? 0 : -EBADMSG;
}

/* The group with the lowest quota, from the process's own upwards. -ENOENT: none is limited. */
static int read_groups(const char *root, weir_time now, struct cpu_reading *reading)
{
	char group[CPU_GROUP_MAX];
	int error = find_group(root, group);
	char *end;

	*reading = (struct cpu_reading){.whole = now, .share = INFINITY};
	if (error != 0)
		return error;
	do {
		double share;

		error = read_quota(root, group, &share);
		if (error == 0 && share < reading->share) {
			reading->share = share;
			reading->grouped = true;
			memcpy(reading->group, group, strlen(group) + 1);
		}
		if (error != 0 && error != -ENOENT)
			return error;
		end = strrchr(group, '/');
		if (end != NULL)
			*end = '\0';
	} while (end != NULL);
	if (!reading->grouped)
		return -ENOENT;
	error = read_usage(root, reading);
	reading->used *= WEIR_US;
	return error;
}

/*
 * Add a line of /proc/stat: user nice system idle iowait irq softirq steal. The further fields are
 * already included in user.
 */
static bool add_cpu(const char *at, struct cpu_reading *reading)
{
	enum { IDLE = 3, IOWAIT = 4, FIELDS = 8 };
	uint64_t ticks;
	int field;

	for (field = 0; field < FIELDS && take_number(&at, &ticks); field++) {
		reading->whole += ticks;
		if (field != IDLE && field != IOWAIT)
			reading->used += ticks;
	}
	return field > IDLE;
}

/* The CPUs in the affinity mask. */
static int read_cpus(const char *root, struct cpu_reading *reading)
{
	cpu_set_t mask[MASK_SETS];
	char line[TEXT_MAX];
	bool found = false;
	int error = 0;
	FILE *file;

	*reading = (struct cpu_reading){.share = 1};
	memset(mask, 0, sizeof(mask));
	if (sched_getaffinity(0, sizeof(mask), mask) != 0)
		return -errno;
	file = open_below(root, "proc", "", "stat");
	if (file == NULL)
		return -errno;
	while (error == 0 && fgets(line, sizeof(line), file) != NULL &&
	       strncmp(line, "cpu", 3) == 0) {
		const char *at = line + 3;
		uint64_t cpu;

		/* The first line is the sum of all. */
		if (*at == ' ' || !take_number(&at, &cpu) || cpu >= MASK_CPUS ||
		    !CPU_ISSET(cpu % CPU_SETSIZE, &mask[cpu / CPU_SETSIZE]))
			continue;
		found = true;
		error = add_cpu(at, reading) ? 0 : -EBADMSG;
	}
	if (error == 0)
		error = read_error(file);
	fclose(file);
	return error == 0 && !found ? -EBADMSG : error;
}

/*
 * Whether two readings are of the same source at different times. Counters of idle time may
 * decrease slightly.
 */
static bool comparable(const struct cpu_reading *last, const struct cpu_reading *now)
{
	return now->whole > last->whole && now->used >= last->used &&
	       now->grouped == last->grouped && strcmp(now->group, last->group) == 0;
}

static void add_measurement(struct cpu_meter *m, double busy, weir_dur time)
{
	if (!m->measured)
		m->busy = busy;
	m->measured = true;
	m->busy += (busy - m->busy) * -expm1(-(double)time / m->time_constant);
}

int cpu_measure(struct cpu_meter *m, weir_time now)
{
	struct cpu_reading reading;
	int error = read_groups(m->root, now, &reading);

	if (error == -ENOENT)
		error = read_cpus(m->root, &reading);
	if (error != 0) {
		m->begun = m->measured = false;
		m->busy = 0;
		return error;
	}
	if (m->begun && now > m->when && comparable(&m->last, &reading)) {
		const double used = (double)(reading.used - m->last.used);
		const double whole = (double)(reading.whole - m->last.whole) * reading.share;

		add_measurement(m, fmin(1, used / whole), now - m->when);
	}
	m->begun = true;
	m->when = now;
	m->last = reading;
	return 0;
}

static double read_gauge(const struct weir_gauge *self)
{
	const struct weir_cpu *cpu = (const struct weir_cpu *)(const void *)self;
	const uint64_t bits = atomic_load_explicit(&cpu->busy, memory_order_relaxed);
	double busy;

	memcpy(&busy, &bits, sizeof(busy));
	return busy;
}

static void show(struct weir_cpu *cpu)
{
	uint64_t bits;

	memcpy(&bits, &cpu->meter.busy, sizeof(bits));
	atomic_store_explicit(&cpu->busy, bits, memory_order_relaxed);
}

/* True: the time has come. False: the gauge is ending. */
static bool sleep_until(struct weir_cpu *cpu, weir_time when)
{
	const struct timespec until = {.tv_sec = (time_t)(when / WEIR_S),
				       .tv_nsec = (long)(when % WEIR_S)};
	int r;

	do
		r = sem_clockwait(&cpu->end, CLOCK_MONOTONIC, &until);
	while (r != 0 && errno == EINTR);
	return r != 0;
}

/* A reading that fails may succeed the next time. */
static void *measure(void *arg)
{
	struct weir_cpu *cpu = arg;

	pthread_setname_np(pthread_self(), "weir-cpu");
	while (sleep_until(cpu, clock_monotonic() + cpu->interval)) {
		(void)cpu_measure(&cpu->meter, clock_monotonic());
		show(cpu);
	}
	return NULL;
}

/* Block signals, which are for the program's own threads, except those raised by a fault. */
static int start(struct weir_cpu *cpu)
{
	sigset_t blocked, before;
	int error;

	sigfillset(&blocked);
	sigdelset(&blocked, SIGBUS);
	sigdelset(&blocked, SIGFPE);
	sigdelset(&blocked, SIGILL);
	sigdelset(&blocked, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	error = pthread_create(&cpu->thread, NULL, measure, cpu);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -error;
}

void weir_cpu_config_init_sized(struct weir_cpu_config *config, size_t size)
{
	memset(config, 0, size);
	config->size = size;
}

static int read_config(const struct weir_cpu_config *given, struct weir_cpu_config *c)
{
	weir_cpu_config_init(c);
	if (given != NULL) {
		if (given->size < offsetof(struct weir_cpu_config, root) ||
		    given->size > sizeof(*c))
			return -EINVAL;
		memcpy(c, given, given->size);
	}
	c->interval = c->interval != 0 ? c->interval : INTERVAL;
	c->time_constant = c->time_constant != 0 ? c->time_constant : TIME_CONSTANT;
	c->root = c->root != NULL ? c->root : "";
	if (c->interval < INTERVAL_MIN || c->interval > INTERVAL_MAX)
		return -EINVAL;
	if (c->time_constant > TIME_CONSTANT_MAX)
		return -EINVAL;
	return strlen(c->root) < CPU_ROOT_MAX ? 0 : -EINVAL;
}

static int make(const struct weir_cpu_config *config, struct weir_cpu **made)
{
	struct weir_cpu_config c;
	struct weir_cpu *cpu;
	int error = read_config(config, &c);

	if (error != 0)
		return error;
	cpu = malloc(sizeof(*cpu));
	if (cpu == NULL)
		return -ENOMEM;
	*cpu = (struct weir_cpu){
		.gauge = {.read = read_gauge},
		.interval = c.interval,
		.maker = getpid(),
		.meter = {.time_constant = (double)c.time_constant},
	};
	memcpy(cpu->meter.root, c.root, strlen(c.root) + 1);
	sem_init(&cpu->end, 0, 0);
	error = cpu_measure(&cpu->meter, clock_monotonic());
	if (error == 0)
		error = start(cpu);
	if (error != 0) {
		sem_destroy(&cpu->end);
		free(cpu);
		return error;
	}
	*made = cpu;
	return 0;
}

int weir_cpu_create(const struct weir_cpu_config *config, struct weir_cpu **made)
{
	const int cancel = cancel_hold();
	int error;

	*made = NULL;
	error = make(config, made);
	cancel_release(cancel);
	return error;
}

const struct weir_gauge *weir_cpu_gauge(const struct weir_cpu *cpu)
{
	return &cpu->gauge;
}

static void end_thread(struct weir_cpu *cpu)
{
	const int cancel = cancel_hold();

	sem_post(&cpu->end);
	pthread_join(cpu->thread, NULL);
	cancel_release(cancel);
}

void weir_cpu_destroy(struct weir_cpu *cpu)
{
	if (cpu == NULL)
		return;
	/* A child of fork() has a copy of all this, but not the thread. */
	if (cpu->maker == getpid())
		end_thread(cpu);
	sem_destroy(&cpu->end);
	free(cpu);
}
