#include "name.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include <weir/shm.h>

static bool add(struct names *names, const char *name)
{
	void *larger = realloc(names->at, (names->count + 1) * sizeof(*names->at));

	if (larger == NULL)
		return false;
	names->at = larger;
	snprintf(names->at[names->count++], NAME_ROOM, "%s%s", name[0] == '/' ? "" : "/", name);
	return true;
}

struct found {
	struct names *names;
	bool complete;
};

static bool add_found(void *arg, const char *name)
{
	struct found *found = arg;

	found->complete = add(found->names, name);
	return found->complete;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int explain(int error, char *why, size_t size)
{
	char text[128];

	snprintf(why, size, "/dev/shm: %s.", strerror_r(-error, text, sizeof(text)));
	return error;
}

static int find_all(struct names *names, char *why, size_t why_size)
{
	struct found found = {.names = names, .complete = true};
	int r = weir_shm_names_visit(add_found, &found);

	if (r >= 0 && !found.complete)
		r = -ENOMEM;
	if (r < 0)
		return explain(r, why, why_size);
	if (names->count > 0)
		qsort(names->at, names->count, sizeof(*names->at), by_name);
	return 0;
}

int names_find(struct names *names, char *const *asked, size_t count, char *why, size_t why_size)
{
	*names = (struct names){.count = 0};
	if (count == 0)
		return find_all(names, why, why_size);
	for (size_t i = 0; i < count; i++) {
		if (strlen(asked[i]) >= NAME_ROOM - 1) {
			snprintf(why, why_size, "%.20s...: the name is too long.", asked[i]);
			return -ENAMETOOLONG;
		}
		if (!add(names, asked[i]))
			return explain(-ENOMEM, why, why_size);
	}
	return 0;
}

void names_free(struct names *names)
{
	free(names->at);
	*names = (struct names){.count = 0};
}

const char *name_shown(const char *name, char *shown, size_t size)
{
	size_t left = strlen(name), used = 0;
	mbstate_t state;

	memset(&state, 0, sizeof(state));
	while (left > 0 && used + MB_LEN_MAX < size) {
		wchar_t c;
		size_t n = mbrtowc(&c, name, left, &state);
		const bool good = n > 0 && n <= left && iswprint((wint_t)c) && c != L'\\';

		if (good) {
			memcpy(shown + used, name, n);
			used += n;
		} else {
			n = 1;
			memset(&state, 0, sizeof(state));
			used += (size_t)snprintf(shown + used, size - used, "\\x%02x",
						 (unsigned char)*name);
		}
		name += n;
		left -= n;
	}
	shown[used] = '\0';
	return shown;
}

/* The library's sentence begins with the name where the file is meant, and not what is in it. */
void name_complain(const char *name, const char *why)
{
	const size_t length = strlen(name);
	const bool named = strncmp(why, name, length) == 0 && why[length] == ':';
	char shown[2 * SHOWN_ROOM];

	if (!named && length > 0)
		fprintf(stderr, "weir: %s: ", name_shown(name, shown, sizeof(shown)));
	else
		fputs("weir: ", stderr);
	fprintf(stderr, "%s\n", name_shown(why, shown, sizeof(shown)));
}
