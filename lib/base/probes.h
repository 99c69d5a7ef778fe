/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static probes (USDT): named points at which a tracer can inspect a running program.
 *
 * A probe is one nop, plus a note beside the code that records where it is and where its arguments
 * are. A tracer puts a breakpoint on the nop; without one, the nop is all that runs. The note can
 * refer to memory, so an argument in memory need not be loaded (gcc leaves it there, clang loads
 * it). An argument that must be computed is computed even without a tracer. On the path of a call
 * there is none; in a window, a few times per second, there are a sum and a conversion.
 *
 * weir:window   a window was closed, and the limit was updated
 *   arg0  its limiter, an address
 *   arg1  the limit before
 *   arg2  the limit after
 *   arg3  most permits in flight
 *   arg4  rtt, in nanoseconds
 *   arg5  drops and timeouts
 *
 * weir:reject   a call was refused at once (never in shadow mode)
 *   arg0  its limiter, an address
 *   arg1  index of its partition
 *   arg2  1: because of its priority; 0: because there was no room
 *
 * These are an interface: users' scripts depend on the names and arguments.
 */
#ifndef WEIR_LIB_PROBES_H
#define WEIR_LIB_PROBES_H

#ifdef WEIR_PROBES
#ifdef __clang__
/* If memory operands are allowed, clang stores arguments to memory first. */
#define STAP_SDT_ARG_CONSTRAINT nr
/* clang warns of the variadic macros in sdt.h, which are an extension. */
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
