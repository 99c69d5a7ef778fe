/* SPDX-License-Identifier: BSD-2-Clause */
#include "json.h"

#include <time.h>
#include <weir/base.h>

json_t *json_count(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static double wall_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / (double)WEIR_S;
}

/* jansson does not escape DEL. It can occur in strings only. */
static int write_piece(const char *piece, size_t size, void *out)
{
	for (size_t i = 0; i < size; i++)
		if ((piece[i] == 0x7f ? fputs("\\u007f", out) : fputc(piece[i], out)) == EOF)
			return -1;
	return 0;
}

/* In ASCII, since a name may contain bytes that control a terminal. */
bool json_print(FILE *out, const char *name, json_t *all, bool one_line)
{
	json_t *root = json_pack("{s:f,s:o}", "time", wall_clock(), name, all);
	const bool good = root != NULL &&
			  json_dump_callback(root, write_piece, out,
					     JSON_REAL_PRECISION(15) | JSON_ENSURE_ASCII |
						     (one_line ? JSON_COMPACT : JSON_INDENT(2))) ==
				  0;

	json_decref(root);
	fputc('\n', out);
	return good;
}
