/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * candidate.h - the configuration of a limiter under test, from text, and limits from plugins.
 *
 *	vegas
 *	vegas:alpha=log10:2,max=500
 *	vegas:windowing=sample
 *	gradient2:rtt=p90,window_max=200ms
 *
 * A parameter belongs to the limit, or configures its windows.
 */
#ifndef CANDIDATE_H
#define CANDIDATE_H

#include <stdbool.h>
#include <weir/weir.h>

struct candidate {
	char *text;
	double times; /* of the oracle's limits, which it has then; 0: it has its own */
	struct weir_config config;
	_Alignas(max_align_t) char limit_config[WEIR_LIMIT_CONFIG_MAX];
};

/* Limits of plugins, which stay loaded. Empty when all zeroes. */
struct plugins {
	const struct weir_limit_ops **limits;
	size_t count;
};

/*
 * Load a shared object that exports weir_plugin. False, with the reason in why, if that fails; for
 * example, the names of its limits must be new.
 */
bool plugin_load(struct plugins *plugins, const char *path, char *why, size_t why_size);

void plugins_free(struct plugins *plugins);

/* Parse a limit of a plugin or of the library. False, with the reason in why, if that fails. */
bool candidate_read(struct candidate *candidate, const struct plugins *plugins, const char *text,
		    char *why, size_t why_size);

void candidate_free(struct candidate *candidate);

#endif
