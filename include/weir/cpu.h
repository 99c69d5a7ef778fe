/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/cpu.h - a gauge of how busy the CPUs are that this process may use.
 *
 *	struct weir_cpu *cpu;
 *
 *	r = weir_cpu_create(NULL, &cpu);
 *	config.limit = &weir_bbr;
 *	config.cpu = weir_cpu_gauge(cpu);
 *
 * If the process's control group (version 2), or one above it, limits CPU time (cpu.max) to no more
 * than the machine has, the gauge shows how much of that time is used by the whole group with the
 * lowest limit. Otherwise it shows how much of the time the CPUs that the process may run on (its
 * affinity mask) were not idle, whatever used them. Time that a hypervisor took counts as used.
 *
 * A thread of the gauge's own measures once an interval and smooths the result; each measurement is
 * weighted by the time it covers. So reading the gauge is one atomic load. By default it reacts
 * about as fast as that of kratos: 16 s from idle to four fifths, when all CPUs become busy at
 * once.
 *
 * Thread safety. The gauge may be read by any thread at any time, and in signal handlers. One gauge
 * serves any number of limiters, and must outlive them.
 *
 * Fork. A child does not inherit the thread, so its gauge stands still. A child that needs a gauge
 * creates its own; weir_cpu_destroy() of the parent's gauge only frees the child's copy.
 *
 * Cancellation. No function here is a cancellation point.
 */
#ifndef WEIR_CPU_H
#define WEIR_CPU_H

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_cpu;

/* Configuration of a gauge; copied. Call weir_cpu_config_init() first; zero means the default. */
struct weir_cpu_config {
	size_t size; /* set by weir_cpu_config_init() */

	weir_dur interval; /* between two measurements, 10 ms to 1 min; default 500 ms */
	/*
	 * The time after which a change shows to 63 %, up to 1 h; 1 ns: at once. Default 9.748 s,
	 * which keeps a weight of 0.95 over 500 ms.
	 */
	weir_dur time_constant;
	/* The folder that contains proc and sys/fs/cgroup, at most 255 bytes; default "". */
	const char *root;
};

#define weir_cpu_config_init(config) weir_cpu_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_cpu_config_init_sized(struct weir_cpu_config *config, size_t size);

/*
 * Create a gauge, and start to measure; config may be NULL. The gauge shows 0, which means unknown,
 * until the first interval is over and whenever there is nothing left to measure.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: a value is invalid.
 * -ENOMEM: out of memory.
 * -EAGAIN: no thread could be created.
 * -EBADMSG: what the system reports is not understood.
 *
 * Other errors are those of open() and read(), such as -ENOENT where there is no proc/stat.
 */
WEIR_API WEIR_MUST_CHECK int weir_cpu_create(const struct weir_cpu_config *config,
					     struct weir_cpu **cpu);

/* The gauge for weir_config.cpu. It belongs to cpu and lasts as long. */
WEIR_API const struct weir_gauge *weir_cpu_gauge(const struct weir_cpu *cpu);

/* End a gauge that no limiter uses any more. Waits for its thread. NULL is allowed. */
WEIR_API void weir_cpu_destroy(struct weir_cpu *cpu);

#ifdef __cplusplus
}
#endif
#endif
