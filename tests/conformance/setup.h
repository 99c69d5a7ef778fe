/*
 * setup.h - a limit as a trace's header describes it, and the chance it is to have.
 */
#ifndef CONFORM_SETUP_H
#define CONFORM_SETUP_H

#include <weir/limiter.h>

#include "trace.h"

struct setup {
	const struct weir_limit_ops *ops;
	_Alignas(16) unsigned char config[WEIR_LIMIT_CONFIG_MAX];
	/*
	 * What the random numbers must be for the limit to draw what the
	 * reference drew: the first at init, the next until the first probe, and so on.
	 */
	double *chances;
	size_t chance_count; /* 0: the limit draws nothing */
};

/*
 * A limit of that name from the keys that begin with prefix. A configuration
 * that weir refuses is a failure, but of a quirk trace only a reason to skip.
 */
bool setup_read(struct setup *setup, const struct trace *trace, const char *prefix,
		const char *algorithm, struct verdict *verdict);
void setup_free(struct setup *setup);

/* A limiter with this limit; the rest of *config is the caller's. */
bool setup_limiter(const struct setup *setup, struct weir_config *config, const struct trace *trace,
		   struct verdict *verdict, struct weir_limiter **limiter);

#endif
