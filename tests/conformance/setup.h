/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * setup.h - a limit configured by a trace's header, and the random numbers it must get.
 */
#ifndef CONFORM_SETUP_H
#define CONFORM_SETUP_H

#include <weir/limiter.h>

#include "trace.h"

struct setup {
	const struct weir_limit_ops *ops;
	_Alignas(16) unsigned char config[WEIR_LIMIT_CONFIG_MAX];
	/*
	 * The random numbers that make the limit draw what the reference drew:
	 * the first for init(), the next until the first probe, and so on.
	 */
	double *chances;
	size_t chance_count; /* 0: the limit draws nothing */
};

/*
 * Configure the limit of that name from the keys that begin with prefix. If weir refuses the
 * configuration, the trace fails; a trace of class quirk is skipped.
 */
bool setup_read(struct setup *setup, const struct trace *trace, const char *prefix,
		const char *algorithm, struct verdict *verdict);
void setup_free(struct setup *setup);

/* Create a limiter with this limit; the caller sets the rest of *config. */
bool setup_limiter(const struct setup *setup, struct weir_config *config, const struct trace *trace,
		   struct verdict *verdict, struct weir_limiter **limiter);

#endif
