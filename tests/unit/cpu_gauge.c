/* SPDX-License-Identifier: BSD-2-Clause */
/* The CPU gauge, reading files that the test writes in place of the system's. */

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <weir/weir.h>

#include "lib/extra/cpu_gauge.h"

static char root[CPU_ROOT_MAX];

static void make_root(void)
{
	strcpy(root, "/tmp/weir-cpu-XXXXXX");
	cr_assert_not_null(mkdtemp(root));
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void remove_root(void)
{
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(cpu, .init = make_root, .fini = remove_root);

/*
 * Write a file below the root, with its folders. It is put in place by a rename: a thread that
 * measures meanwhile reads the old text or the new one.
 */
static void put(const char *name, const char *format, ...)
{
	char path[2048], aside[CPU_ROOT_MAX + 8];
	va_list values;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	snprintf(aside, sizeof(aside), "%s/.new", root);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(aside, "w");
	cr_assert_not_null(file, "%s", aside);
	va_start(values, format);
	vfprintf(file, format, values);
	va_end(values);
	fclose(file);
	cr_assert_eq(rename(aside, path), 0, "%s", path);
}

static void drop(const char *name)
{
	char path[2048];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	cr_assert_eq(unlink(path), 0, "%s", path);
}

/* A meter without smoothing. */
static struct cpu_meter meter(void)
{
	struct cpu_meter m = {.time_constant = 1};

	strcpy(m.root, root);
	return m;
}

#define S WEIR_S

static double measure(struct cpu_meter *m, weir_time now)
{
	cr_assert_eq(cpu_measure(m, now), 0);
	return m->busy;
}

static void assert_busy(struct cpu_meter *m, weir_time now, double busy)
{
	measure(m, now);
	cr_assert_float_eq(m->busy, busy, 1e-9, "%f for %f", m->busy, busy);
}

/* The result of a first reading. */
static int first(void)
{
	struct cpu_meter m = meter();

	return cpu_measure(&m, S);
}

/* The CPU that this test runs on; from now on the only one. */
static unsigned settle(void)
{
	cpu_set_t set;
	unsigned cpu = (unsigned)sched_getcpu();

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
	return cpu;
}

/* A group's files: its quota, and its usage. */
static void put_group(const char *group, const char *max, unsigned usage_usec)
{
	char name[1200];

	snprintf(name, sizeof(name), "sys/fs/cgroup%s/cpu.max", group);
	put(name, "%s\n", max);
	snprintf(name, sizeof(name), "sys/fs/cgroup%s/cpu.stat", group);
	put(name, "usage_usec %u\nuser_usec 1\nsystem_usec 2\n", usage_usec);
}

static void put_stat(unsigned cpu, unsigned busy, unsigned idle)
{
	put("proc/stat",
	    "cpu  1 2 3 4 5 6 7 8 9 10\n"
	    "cpu%u 777 0 0 0 0 0 0 0 0 0\n"
	    "cpu%u %u 0 0 %u 0 0 0 0 0 0\n"
	    "intr 1 2 3\n",
	    cpu + 1, cpu, busy, idle);
}

Test(cpu, only_cpus_of_the_affinity_mask_count)
{
	struct cpu_meter m = meter();
	unsigned cpu = settle();

	put_stat(cpu, 100, 100);
	cr_assert_eq(measure(&m, S), 0);
	put_stat(cpu, 130, 110);
	assert_busy(&m, 2 * S, 0.75); /* 30 of 40 ticks */
	put_stat(cpu, 130, 150);
	assert_busy(&m, 3 * S, 0);
	put_stat(cpu, 170, 150);
	assert_busy(&m, 4 * S, 1);
}

Test(cpu, all_time_but_idle_and_iowait_is_used)
{
	struct cpu_meter m = meter();
	unsigned cpu = settle();

	put("proc/stat", "cpu%u 0 0 0 0 0 0 0 0 0 0\n", cpu);
	measure(&m, S);
	/* Guest time is already included in user time. */
	put("proc/stat", "cpu%u 10 10 10 20 20 10 10 10 1000 1000\n", cpu);
	assert_busy(&m, 2 * S, 0.6);
}

Test(cpu, ticks_that_go_back_measure_nothing)
{
	struct cpu_meter m = meter();
	unsigned cpu = settle();

	put_stat(cpu, 100, 100);
	measure(&m, S);
	put_stat(cpu, 130, 110);
	measure(&m, 2 * S);
	put_stat(cpu, 130, 100);
	assert_busy(&m, 3 * S, 0.75); /* unchanged */
	assert_busy(&m, 4 * S, 0.75); /* no tick has passed */
	put_stat(cpu, 140, 110);
	assert_busy(&m, 5 * S, 0.5);
}

Test(cpu, a_clock_that_stands_still_measures_nothing)
{
	struct cpu_meter m = meter();
	unsigned cpu = settle();

	put_stat(cpu, 100, 100);
	measure(&m, S);
	put_stat(cpu, 130, 110);
	assert_busy(&m, S, 0);
	put_stat(cpu, 140, 120);
	assert_busy(&m, 2 * S, 0.5); /* since the second reading */
}

Test(cpu, another_group_restarts_the_measurement)
{
	struct cpu_meter m = meter();

	put_group("/one", "100000 100000", 1000000);
	put_group("/two", "100000 100000", 2000000);
	put("proc/self/cgroup", "0::/one\n");
	measure(&m, S);
	put("proc/self/cgroup", "0::/two\n");
	assert_busy(&m, 2 * S, 0);
	put_group("/two", "100000 100000", 2250000);
	assert_busy(&m, 3 * S, 0.25);
}

/* Of the root group, whose path is as empty as that of none. */
Test(cpu, a_new_quota_restarts_the_measurement)
{
	struct cpu_meter m = meter();

	put_stat(settle(), 100, 100);
	measure(&m, S);
	put("proc/self/cgroup", "0::/\n");
	put_group("", "100000 100000", 1000000);
	assert_busy(&m, 2 * S, 0);
	put_group("", "100000 100000", 1250000);
	assert_busy(&m, 3 * S, 0.25);
}

Test(cpu, a_group_uses_its_quota)
{
	struct cpu_meter m = meter();

	put("proc/self/cgroup", "1:name=systemd:/x\n0::/app\n");
	put_group("/app", "100000 100000", 5000000); /* one CPU */
	cr_assert_eq(measure(&m, S), 0);
	put_group("/app", "100000 100000", 5500000); /* half a second of CPU time in one second */
	assert_busy(&m, 2 * S, 0.5);
	put_group("/app", "50000 100000", 5900000);
	assert_busy(&m, 3 * S, 0.8); /* the quota may change */
	put_group("/app", "50000 100000", 8900000);
	assert_busy(&m, 4 * S, 1); /* a burst does not exceed 1 */
}

Test(cpu, the_lowest_quota_on_the_path_counts)
{
	struct cpu_meter m = meter();

	put("proc/self/cgroup", "0::/slice/app/leaf\n");
	put_group("/slice", "100000 100000", 1000000);
	put_group("/slice/app", "400000 100000", 500000);
	put_group("/slice/app/leaf", "max 100000", 100000);
	measure(&m, S);
	put_group("/slice", "100000 100000", 1700000);
	put_group("/slice/app", "400000 100000", 1100000);
	assert_busy(&m, 2 * S, 0.7);
	put_group("/slice/app", "10000 100000", 1100000);
	assert_busy(&m, 3 * S, 0.7); /* another group: measuring restarts */
	put_group("/slice/app", "10000 100000", 1120000);
	assert_busy(&m, 4 * S, 0.2);
}

/* Such a quota cannot be used up: if all CPUs were busy, the gauge would still show less than 1. */
Test(cpu, a_quota_above_all_cpus_is_ignored)
{
	const long all = sysconf(_SC_NPROCESSORS_ONLN);
	struct cpu_meter m = meter();
	unsigned cpu = settle();
	char max[64];

	snprintf(max, sizeof(max), "%ld 1000", all * 1000 + 1);
	put("proc/self/cgroup", "0::/app\n");
	put_group("/app", max, 1000000);
	put_stat(cpu, 100, 100);
	measure(&m, S);
	put_group("/app", max, 1100000);
	put_stat(cpu, 130, 110);
	assert_busy(&m, 2 * S, 0.75);
}

Test(cpu, the_root_group_has_no_path)
{
	struct cpu_meter m = meter();

	put("proc/self/cgroup", "0::/\n");
	put_group("", "100000 100000", 0);
	measure(&m, S);
	put_group("", "100000 100000", 250000);
	assert_busy(&m, 2 * S, 0.25);
}

Test(cpu, without_a_quota_cpus_are_measured)
{
	static const char *const groups[] = {"0::/app\n",    "0::/\n", "0::/../other\n",
					     "1:cpu:/app\n", "",       "0::/gone\n"};
	unsigned cpu = settle();

	put_group("/app", "max 100000", 1);
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		struct cpu_meter m = meter();

		put("proc/self/cgroup", "%s", groups[i]);
		put_stat(cpu, 100, 100);
		measure(&m, S);
		put_stat(cpu, 130, 110);
		assert_busy(&m, 2 * S, 0.75);
	}
}

Test(cpu, a_measurement_weighs_by_the_time_it_covers)
{
	struct cpu_meter m = meter();
	unsigned cpu = settle();

	m.time_constant = -5e8 / log(0.95); /* 0.95 for 500 ms */
	put_stat(cpu, 0, 0);
	measure(&m, 0);
	put_stat(cpu, 80, 20);
	assert_busy(&m, S / 2, 0.8); /* the first measurement counts in full */
	put_stat(cpu, 80, 120);
	assert_busy(&m, S, 0.8 * 0.95);
	put_stat(cpu, 80, 220);
	assert_busy(&m, 2 * S, 0.8 * 0.95 * 0.95 * 0.95); /* twice as long */
}

Test(cpu, bad_files_are_refused)
{
	static const struct {
		const char *max, *stat;
	} bad[] = {
		{"", "usage_usec 1\n"},
		{"100000", "usage_usec 1\n"},
		{"-1 100000", "usage_usec 1\n"},
		{"0 100000", "usage_usec 1\n"},
		{"100000 0", "usage_usec 1\n"},
		{"x 100000", "usage_usec 1\n"},
		{"99999999999999999999 1", "usage_usec 1\n"},
		{"100000 100000", ""},
		{"100000 100000", "user_usec 1\n"},
		{"100000 100000", "usage_usec x\n"},
	};
	unsigned cpu = settle();

	put_stat(cpu, 1, 1);
	put("proc/self/cgroup", "0::/app\n");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put("sys/fs/cgroup/app/cpu.max", "%s", bad[i].max);
		put("sys/fs/cgroup/app/cpu.stat", "%s", bad[i].stat);
		cr_assert_eq(first(), -EBADMSG, "%s, %s", bad[i].max, bad[i].stat);
	}
	put("proc/self/cgroup", "0::/%01100d\n", 0);
	cr_assert_eq(first(), -ENAMETOOLONG);
	put("proc/self/cgroup", "0::/app");
	cr_assert_eq(first(), -ENAMETOOLONG, "a line without an end");
}

Test(cpu, a_folder_in_place_of_a_file_is_an_error)
{
	settle();
	put("proc/self/cgroup", "0::/app\n");
	put("sys/fs/cgroup/app/cpu.max/file", "100000 100000\n");
	cr_assert_eq(first(), -EISDIR);
	put("sys/fs/cgroup/app/cpu.stat", "usage_usec 1\n");
	put("proc/self/cgroup", "0::/other\n");
	put("sys/fs/cgroup/other/cpu.max", "100000 100000\n");
	put("sys/fs/cgroup/other/cpu.stat/file", "usage_usec 1\n");
	cr_assert_eq(first(), -EISDIR);
}

Test(cpu, bad_cpu_lines_are_refused)
{
	static const char *const bad[] = {"",
					  "cpu\n",
					  "intr 1\n",
					  "cpu%u 1 2 3\n",
					  "cpu%u\n",
					  "cpu%u 1 x 3 4\n",
					  "cpu%u 1 2 3 99999999999999999999\n",
					  "cpu  1 2 3 4\ncpu99999 1 2 3 4\n"};
	unsigned cpu = settle();

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put("proc/stat", bad[i], cpu);
		cr_assert_eq(first(), -EBADMSG, "%s", bad[i]);
	}
	drop("proc/stat");
	cr_assert_eq(first(), -ENOENT);
}

Test(cpu, unreadable_files_make_the_gauge_unknown)
{
	struct cpu_meter m = meter();
	unsigned cpu = settle();

	put_stat(cpu, 0, 0);
	measure(&m, S);
	put_stat(cpu, 10, 0);
	cr_assert_eq(measure(&m, 2 * S), 1);
	drop("proc/stat");
	cr_assert_eq(cpu_measure(&m, 3 * S), -ENOENT);
	cr_assert_eq(m.busy, 0);
	put_stat(cpu, 20, 10);
	cr_assert_eq(measure(&m, 4 * S), 0);
	put_stat(cpu, 21, 13);
	assert_busy(&m, 5 * S, 0.25);
}

static struct weir_cpu_config config_here(void)
{
	struct weir_cpu_config config;

	weir_cpu_config_init(&config);
	config.root = root;
	config.interval = 10 * WEIR_MS;
	config.time_constant = 1;
	return config;
}

/* Wait until the gauge shows it, up to the test's own time limit. */
static void await(const struct weir_gauge *gauge, double busy)
{
	while (fabs(gauge->read(gauge) - busy) > 1e-9)
		usleep(1000);
}

Test(cpu, a_thread_updates_the_gauge, .timeout = 60)
{
	struct weir_cpu_config config = config_here();
	const struct weir_gauge *gauge;
	struct weir_cpu *cpu;
	unsigned on = settle();

	put_stat(on, 100, 100);
	cr_assert_eq(weir_cpu_create(&config, &cpu), 0);
	gauge = weir_cpu_gauge(cpu);
	cr_assert_eq(gauge->read(gauge), 0);
	put_stat(on, 130, 110);
	await(gauge, 0.75);
	drop("proc/stat");
	await(gauge, 0);
	weir_cpu_destroy(cpu);
	weir_cpu_destroy(NULL);
}

Test(cpu, a_child_can_end_its_copy, .timeout = 60)
{
	struct weir_cpu_config config = config_here();
	struct weir_cpu *cpu;
	int status;
	pid_t child;

	put_stat(settle(), 100, 100);
	cr_assert_eq(weir_cpu_create(&config, &cpu), 0);
	child = fork();
	if (child == 0) {
		weir_cpu_destroy(cpu);
		_exit(7);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	weir_cpu_destroy(cpu);
}

Test(cpu, the_system_itself_can_be_measured)
{
	struct weir_cpu *cpu;

	cr_assert_eq(weir_cpu_create(NULL, &cpu), 0);
	weir_cpu_destroy(cpu);
}

Test(cpu, bad_configurations_are_refused)
{
	struct weir_cpu *cpu = (struct weir_cpu *)(void *)root;
	struct weir_cpu_config good = config_here(), c;
	char long_root[CPU_ROOT_MAX + 1];

	memset(long_root, 'x', CPU_ROOT_MAX);
	long_root[CPU_ROOT_MAX] = '\0';
#define REFUSED(field, value, error)                                                               \
	do {                                                                                       \
		c = good;                                                                          \
		c.field = (value);                                                                 \
		cr_assert_eq(weir_cpu_create(&c, &cpu), error);                                    \
		cr_assert_null(cpu);                                                               \
	} while (0)
	put_stat(settle(), 1, 1);
	REFUSED(interval, 10 * WEIR_MS - 1, -EINVAL);
	REFUSED(interval, 60 * WEIR_S + 1, -EINVAL);
	REFUSED(time_constant, 3600 * WEIR_S + 1, -EINVAL);
	REFUSED(root, long_root, -EINVAL);
	REFUSED(size, 0, -EINVAL);
	REFUSED(size, sizeof(c) + 1, -EINVAL);
	REFUSED(root, "/nowhere", -ENOENT);
#undef REFUSED
}
