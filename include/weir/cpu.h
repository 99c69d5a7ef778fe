/*
 * weir/cpu.h - a gauge of how busy the processors are that this process may use.
 *
 *	struct weir_cpu *cpu;
 *
 *	r = weir_cpu_create(NULL, &cpu);
 *	config.limit = &weir_bbr;
 *	config.cpu = weir_cpu_gauge(cpu);
 *
 * Where the process's control group (version 2), or one above it, is limited in processor time
 * (cpu.max), to no more than the machine has, it shows how much of that is used: by all in the
 * group with the least. Elsewhere it shows how much of their time the processors that the process
 * may run on (its affinity mask) were not idle, whoever used them; time that a hypervisor took
 * counts as used.
 *
 * It is measured by a thread of its own, once an interval, and smoothed: each measurement's weight
 * is by the time it covers. So reading it is one atomic load. By default it takes about as long as
 * that of kratos: 16 s from idle to four fifths, when all processors get busy at once.
 *
 * Thread safety. The gauge may be read by any thread at any time, and in signal handlers; one
 * serves any number of limiters. It must outlive them.
 *
 * Fork. A child has no such thread: there the gauge stands still. A child that wants one makes
 * its own; weir_cpu_destroy() of the parent's only frees the copy.
 *
 * Cancellation. Nothing here is a cancellation point.
 */
#ifndef WEIR_CPU_H
#define WEIR_CPU_H

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_cpu;

/* How a gauge is to be. weir_cpu_config_init() first; zero means the default. It is copied. */
struct weir_cpu_config {
	size_t size; /* set by weir_cpu_config_init() */

	weir_dur interval; /* 500 ms; 10 ms to 1 min: between two measurements */
	/* 9.748 s, so .95 a 500 ms; up to 1 h: when a change is seen to 63 %. 1 ns: at once. */
	weir_dur time_constant;
	/* "": the folder that proc and sys/fs/cgroup are in, at most 255 bytes */
	const char *root;
};

#define weir_cpu_config_init(config) weir_cpu_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_cpu_config_init_sized(struct weir_cpu_config *config, size_t size);

/*
 * Make a gauge, and begin to measure; config may be NULL. It shows 0, not known, until the first
 * interval is over, and whenever there is nothing to be measured any more. 0; -EINVAL: a value
 * is no good; -ENOMEM; -EAGAIN: there is no thread to be had; -EBADMSG: what the system says of
 * itself is not understood; or what open() or read() fail with, as -ENOENT where there is no
 * proc/stat.
 */
WEIR_API WEIR_MUST_CHECK int weir_cpu_create(const struct weir_cpu_config *config,
					     struct weir_cpu **cpu);

/* For weir_config.cpu. The gauge's own: it lasts as long. */
WEIR_API const struct weir_gauge *weir_cpu_gauge(const struct weir_cpu *cpu);

/* End a gauge that no limiter uses any more. It waits for its thread. NULL is allowed. */
WEIR_API void weir_cpu_destroy(struct weir_cpu *cpu);

#ifdef __cplusplus
}
#endif
#endif
