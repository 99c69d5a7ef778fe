/*
 * candidate.h - a limiter to be tried out, from a text, and limits from elsewhere.
 *
 *	vegas
 *	vegas:alpha=log10:2,max=500
 *	vegas:windowing=sample
 *	gradient2:rtt=p90,window_max=200ms
 *
 * A parameter is the limit's, or says which windows it gets.
 */
#ifndef CANDIDATE_H
#define CANDIDATE_H

#include <stdbool.h>
#include <weir/weir.h>

struct candidate {
	char *text;
	struct weir_config config;
	_Alignas(max_align_t) char limit_config[WEIR_LIMIT_CONFIG_MAX];
};

/* Limits of plugins, which stay loaded. Of all zeroes there are none. */
struct plugins {
	const struct weir_limit_ops **limits;
	size_t count;
};

/*
 * Load a shared object that exports weir_plugin. False, and why not in a sentence: for one, its
 * limits must have names that there are not yet.
 */
bool plugin_load(struct plugins *plugins, const char *path, char *why, size_t why_size);

void plugins_free(struct plugins *plugins);

/* A limit of a plugin or of the library. False, and why not in a sentence. */
bool candidate_read(struct candidate *candidate, const struct plugins *plugins, const char *text,
		    char *why, size_t why_size);

void candidate_free(struct candidate *candidate);

#endif
