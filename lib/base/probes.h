/*
 * Static probes (USDT): places where a tracer looks into a running program, by name.
 *
 * A probe is one nop, and a note beside the code that says where it is and where its
 * arguments lie. A tracer puts a breakpoint on the nop; without one, that is all that
 * runs. The note can point to memory, so an argument that lies there need not be loaded (gcc
 * leaves it there, clang loads it). What has to be computed is computed for nobody too: on the
 * path of a call nothing is, and in a window, some times a second, a sum and a conversion.
 *
 * weir:window   a window is closed, and the limit has seen it
 *   arg0  its limiter, an address
 *   arg1  the limit before
 *   arg2  the limit from now on
 *   arg3  most in flight
 *   arg4  rtt, in nanoseconds
 *   arg5  drops, with timeouts
 *
 * weir:reject   a call was refused at once (so not in shadow mode)
 *   arg0  its limiter, an address
 *   arg1  its partition's index
 *   arg2  1: for its priority; 0: for lack of room
 *
 * These are an interface: scripts of others depend on names and arguments.
 */
#ifndef WEIR_LIB_PROBES_H
#define WEIR_LIB_PROBES_H

#ifdef WEIR_PROBES
#ifdef __clang__
/* It would put arguments into memory first, if it may be memory. */
#define STAP_SDT_ARG_CONSTRAINT nr
/* The variadic macros of sdt.h are an extension, and it says so. */
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif
#include <sys/sdt.h>
#define PROBE_WINDOW(limiter, before, after, inflight, rtt, drops)                                 \
	DTRACE_PROBE6(weir, window, limiter, before, after, inflight, rtt, drops)
#define PROBE_REJECT(limiter, partition, shed) DTRACE_PROBE3(weir, reject, limiter, partition, shed)
#else
#define PROBE_WINDOW(limiter, before, after, inflight, rtt, drops) ((void)0)
#define PROBE_REJECT(limiter, partition, shed)                     ((void)0)
#endif

#endif
