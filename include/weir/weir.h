/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/weir.h - adaptive concurrency limits. Includes all public headers.
 */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <weir/base.h>
#include <weir/cpu.h>
#include <weir/executor.h>
#include <weir/limit.h>
#include <weir/limiter.h>
#include <weir/limits.h>
#include <weir/saved.h>
#include <weir/metrics.h>
#include <weir/observe.h>
#include <weir/partition.h>
#include <weir/rate.h>
#include <weir/registry.h>
#include <weir/shm.h>
#include <weir/wait.h>

#endif
