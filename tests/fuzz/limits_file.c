/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_file.c - arbitrary text as a file for weir fleet apply. What it holds is printed, and must
 * be read back as the same.
 */
#include "cli/weir/fleet_file.h"
#include "fuzz.h"

#define TEXT_MAX 4000

static int read_text(char *text, size_t size, struct limits_file *file, char *why, size_t why_size)
{
	FILE *in = fmemopen(text, size, "r");
	int r;

	must(in != NULL);
	r = limits_file_read(in, file, why, why_size);
	fclose(in);
	return r;
}

static int check(const struct file_limit *limit, const struct weir_fleet_limit *settings, char *why,
		 size_t why_size)
{
	return limit->is_template ? weir_fleet_template_check(limit->name, settings, why, why_size)
				  : weir_fleet_limit_check(limit->name, settings, why, why_size);
}

static void check_same(const struct file_limit *limit)
{
	struct weir_fleet_limit before, after;
	struct limits_file file;
	char *text = NULL, why[300] = "";
	size_t size = 0;
	FILE *out;

	weir_fleet_limit_init(&before);
	before.lease = WEIR_S;
	fleet_settings_apply(&limit->settings, &before);
	if (check(limit, &before, why, sizeof(why)) != 0) {
		must(is_sentence(why));
		return;
	}
	out = open_memstream(&text, &size);
	must(out != NULL);
	if (limit->is_template)
		limits_file_print_template(out, limit->name, &before);
	else
		limits_file_print(out, limit->name, &before);
	fclose(out);
	must(read_text(text, size, &file, why, sizeof(why)) == 0 && file.count == 1);
	weir_fleet_limit_init(&after);
	fleet_settings_apply(&file.at[0].settings, &after);
	must(strcmp(file.at[0].name, limit->name) == 0);
	must(file.at[0].is_template == limit->is_template);
	must(memcmp(&before, &after, sizeof(before)) == 0);
	limits_file_free(&file);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size, TEXT_MAX), why[300] = "";
	struct limits_file file;
	int r;

	if (text == NULL || size == 0) {
		free(text);
		return 0;
	}
	r = read_text(text, size, &file, why, sizeof(why));
	must(r == 0 || (r == -EINVAL && file.line > 0 && is_sentence(why)));
	for (size_t i = 0; r == 0 && i < file.count; i++)
		check_same(&file.at[i]);
	limits_file_free(&file);
	free(text);
	return 0;
}
