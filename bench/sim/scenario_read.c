/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario_read.c - read texts and files with libconfig.
 */
#include "scenario_read.h"

#include "alloc_or_abort.h"
#include "scenario_random.h"
#include "scenario_settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_config(const struct reader *r, const config_setting_t *root, struct scenario *s)
{
	const uint64_t basis = UINT64_C(0xcbf29ce484222325);
	int error = scenario_from_settings(s, r, root);

	if (error == 0)
		s->digest = settings_digest_bytes(settings_digest(basis, root), s->arrivals.times,
						  s->arrivals.count * sizeof(s->arrivals.times[0]));
	return error;
}

static int fail_syntax(const struct reader *r, const config_t *config)
{
	const char *included = config_error_file(config);

	snprintf(r->why, r->why_size, "%s:%d: %s.", included != NULL ? included : r->name,
		 config_error_line(config), config_error_text(config));
	return -EINVAL;
}

static int from_text(struct scenario *s, const struct reader *r, const char *text)
{
	config_t config;
	int error;

	*s = (struct scenario){.rounds = 1};
	config_init(&config);
	config_set_include_dir(&config, r->folder[0] == '\0' ? "." : r->folder);
	if (config_read_string(&config, text) == CONFIG_TRUE)
		error = read_config(r, config_root_setting(&config), s);
	else
		error = fail_syntax(r, &config);
	config_destroy(&config);
	if (error != 0)
		scenario_free(s);
	return error;
}

int scenario_from_text(struct scenario *s, const char *name, const char *text, char *why,
		       size_t why_size)
{
	const struct reader r = {.name = name, .folder = "", .why = why, .why_size = why_size};

	return from_text(s, &r, text);
}

/* The content of a file without zero bytes, zero-terminated. NULL on error, with errno set. */
static char *whole_file(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;
	int error = 0;

	if (file == NULL)
		return NULL;
	errno = 0;
	if (getdelim(&text, &size, '\0', file) < 0)
		error = errno != 0 ? errno : ENODATA;
	else if (!feof(file))
		error = EILSEQ;
	fclose(file);
	if (error != 0)
		free(text);
	errno = error;
	return error == 0 ? text : NULL;
}

int scenario_from_file(struct scenario *s, const char *path, char *why, size_t why_size)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash == path ? strdup("/")
				     : strndup(path, slash == NULL ? 0 : (size_t)(slash - path));
	const struct reader r = {.name = path, .folder = folder, .why = why, .why_size = why_size};
	char *text = whole_file(path);
	int error = -errno;

	if (text == NULL)
		snprintf(why, why_size, "%s: %s.", path,
			 error == -ENODATA  ? "The file is empty"
			 : error == -EILSEQ ? "The file is not text"
					    : strerror(-error));
	else
		error = from_text(s, &r, text);
	free(text);
	free(folder);
	return error;
}

bool scenario_builtin(struct scenario *s, unsigned index)
{
	char why[300];

	if (scenario_text(index) == NULL)
		return false;
	if (scenario_from_text(s, "built-in", scenario_text(index), why, sizeof(why)) != 0) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	return true;
}

char *scenario_text_of(const char *name)
{
	struct scenario s;
	uint32_t seed, number;
	char *text = NULL;

	if (random_name(name, &seed, &number))
		return random_text(seed, number);
	for (unsigned i = 0; text == NULL && scenario_builtin(&s, i); i++) {
		if (strcmp(s.name, name) == 0)
			text = strdup_or_abort(scenario_text(i));
		scenario_free(&s);
	}
	return text;
}

int scenario_find(struct scenario *s, const char *name, char *why, size_t why_size)
{
	char *text;
	int error = -ENOENT;

	if (strpbrk(name, "/.") != NULL)
		return scenario_from_file(s, name, why, why_size);
	text = scenario_text_of(name);
	if (text != NULL)
		error = scenario_from_text(s, name, text, why, why_size);
	else if (strncmp(name, RANDOM_PREFIX, strlen(RANDOM_PREFIX)) == 0)
		snprintf(
			why, why_size,
			"There is no scenario \"%s\": write %sSEED-NUMBER, with a seed from 0 and a "
			"number from 1, both to %u.",
			name, RANDOM_PREFIX, UINT32_MAX);
	else
		snprintf(
			why, why_size,
			"There is no scenario \"%s\": see the list; a file name contains a slash or "
			"a dot.",
			name);
	free(text);
	return error;
}
