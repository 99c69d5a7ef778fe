/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.c - arbitrary text as a limit, as weir-sim and as the library parse it. A valid limit is
 * created and fed with samples.
 */
#include "cli/weir-sim/candidate.h"
#include "samples.h"

#define TEXT_MAX 1200

static void try_out(const struct weir_config *wanted)
{
	struct weir_config config = *wanted;
	struct weir_limiter *limiter;

	config.stripes = 1;
	must(weir_limiter_create(&config, &limiter) == 0);
	check_limit(limiter);
	feed(limiter, 5, 300);
	weir_limiter_destroy(limiter);
}

static void read_by_library(const char *text)
{
	_Alignas(max_align_t) char limit_config[WEIR_LIMIT_CONFIG_MAX];
	struct weir_config config;
	char why[200] = "";

	weir_config_init(&config);
	if (weir_limit_from_text(text, &config.limit, limit_config, why, sizeof(why)) != 0) {
		must(is_sentence(why));
		return;
	}
	config.limit_config = limit_config;
	must(weir_config_check(&config, why, sizeof(why)) == 0);
	try_out(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plugins none = {.limits = NULL};
	struct candidate *candidate = allocate(sizeof(*candidate));
	char *text = text_of(data, size, TEXT_MAX), why[600] = "";

	if (text != NULL) {
		if (candidate_read(candidate, &none, text, why, sizeof(why)))
			try_out(&candidate->config);
		else
			must(is_sentence(why));
		candidate_free(candidate);
		read_by_library(text);
	}
	free(text);
	free(candidate);
	return 0;
}
