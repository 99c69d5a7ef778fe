/* SPDX-License-Identifier: BSD-2-Clause */
#include "name.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

#include <weir/shm.h>

static uint32_t parse_user(const char *text, struct argp_state *state)
{
	const struct passwd *user = getpwnam(text);
	unsigned long number;
	char *end;

	if (user != NULL)
		return user->pw_uid;
	errno = 0;
	number = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || number >= UINT32_MAX)
		argp_error(state, "no such user: %s", text);
	return (uint32_t)number;
}

error_t choice_option(struct choice *choice, int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'u':
		if (choice->user_count == USERS_MAX)
			argp_error(state, "--user can be given at most %d times", USERS_MAX);
		choice->users[choice->user_count++] = parse_user(arg, state);
		return 0;
	case ARGP_KEY_ARG:
		choice->asked = &state->argv[state->next - 1];
		choice->count = (size_t)state->argc - (size_t)state->next + 1;
		state->next = state->argc;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static bool add(struct names *names, const char *name, uint32_t owner)
{
	struct name *larger = realloc(names->at, (names->count + 1) * sizeof(*names->at));

	if (larger == NULL)
		return false;
	names->at = larger;
	larger += names->count++;
	snprintf(larger->text, NAME_ROOM, "%s%s", name[0] == '/' ? "" : "/", name);
	larger->owner = owner;
	return true;
}

struct found {
	const struct choice *choice;
	struct names *names;
	bool complete;
};

static bool is_trusted(const struct choice *choice, uint32_t user)
{
	bool trusted = user == 0 || user == geteuid();

	for (size_t i = 0; i < choice->user_count; i++)
		trusted |= choice->users[i] == user;
	return trusted;
}

static void leave_out(struct left_out *left_out, uint32_t user)
{
	bool known = left_out->user_count == sizeof(left_out->users) / sizeof(left_out->users[0]);

	left_out->of_others++;
	for (size_t i = 0; i < left_out->user_count; i++)
		known |= left_out->users[i] == user;
	if (!known)
		left_out->users[left_out->user_count++] = user;
}

static bool add_found(void *arg, const struct weir_shm_file *file)
{
	struct found *found = arg;

	if (!is_trusted(found->choice, file->owner))
		leave_out(&found->names->left_out, file->owner);
	else if ((file->mode & 0002) != 0)
		found->names->left_out.open++;
	else
		found->complete = add(found->names, file->name, file->owner);
	return found->complete;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

static int explain(int error, char *why, size_t size)
{
	char text[128];

	snprintf(why, size, "/dev/shm: %s.", strerror_r(-error, text, sizeof(text)));
	return error;
}

static int find_all(struct names *names, const struct choice *choice, char *why, size_t why_size)
{
	struct found found = {.choice = choice, .names = names, .complete = true};
	int r = weir_shm_files_visit(add_found, &found);

	if (r >= 0 && !found.complete)
		r = -ENOMEM;
	if (r < 0)
		return explain(r, why, why_size);
	if (names->count > 0)
		qsort(names->at, names->count, sizeof(*names->at), by_name);
	return 0;
}

int names_find(struct names *names, const struct choice *choice, char *why, size_t why_size)
{
	*names = (struct names){.count = 0};
	if (choice->count == 0)
		return find_all(names, choice, why, why_size);
	for (size_t i = 0; i < choice->count; i++) {
		if (strlen(choice->asked[i]) >= NAME_ROOM - 1) {
			snprintf(why, why_size, "%.20s...: the name is too long.",
				 choice->asked[i]);
			return -ENAMETOOLONG;
		}
		if (!add(names, choice->asked[i], WEIR_SHM_ANY_USER))
			return explain(-ENOMEM, why, why_size);
	}
	return 0;
}

void names_free(struct names *names)
{
	free(names->at);
	*names = (struct names){.count = 0};
}

static void tell_user(uint32_t number)
{
	const struct passwd *user = getpwuid(number);
	char shown[SHOWN_ROOM];

	if (user != NULL)
		fputs(name_shown(user->pw_name, shown, sizeof(shown)), stderr);
	else
		fprintf(stderr, "%" PRIu32, number);
}

void left_out_print(const struct left_out *left_out)
{
	const char *before = "";

	if (left_out->of_others == 0 && left_out->open == 0)
		return;
	fputs("weir: Left out: ", stderr);
	if (left_out->of_others > 0) {
		fprintf(stderr, "%u of other users (", left_out->of_others);
		for (size_t i = 0; i < left_out->user_count; i++, before = ", ") {
			fputs(before, stderr);
			tell_user(left_out->users[i]);
		}
		fputs("), see --user", stderr);
	}
	if (left_out->open > 0)
		fprintf(stderr, "%s%u writable by every user: name those that you want to see",
			left_out->of_others > 0 ? "; " : "", left_out->open);
	fputs(".\n", stderr);
}

/* Code points that are not text: control characters and direction marks. */
static bool is_command(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c},
		{0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
		{0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
	};
	bool command = false;

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		command |= c >= ranges[i].first && c <= ranges[i].last;
	return command;
}

const char *name_shown(const char *name, char *shown, size_t size)
{
	size_t left = strlen(name), used = 0;
	mbstate_t state;

	memset(&state, 0, sizeof(state));
	while (left > 0 && used + MB_LEN_MAX < size) {
		wchar_t c;
		size_t n = mbrtowc(&c, name, left, &state);
		const bool good = n > 0 && n <= left && iswprint((wint_t)c) && c != L'\\' &&
				  !is_command((uint32_t)c);

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

/* The length of a UTF-8 character and its code point. An invalid byte counts as a control. */
static size_t decode(const char *text, size_t size, uint32_t *c)
{
	const unsigned char first = (unsigned char)text[0];
	const size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	*c = first < 0x80 ? first : first & (0x7fu >> length);
	if (length > size || (first >= 0x80 && first < 0xc2)) {
		*c = 0;
		return 1;
	}
	for (size_t i = 1; i < length; i++)
		*c = *c << 6 | ((unsigned char)text[i] & 0x3f);
	return length;
}

void labels_print(FILE *out, const char *text, size_t size)
{
	for (size_t at = 0, length; at < size; at += length) {
		uint32_t c;

		length = decode(text + at, size - at, &c);
		if (c == '\n' || !is_command(c)) {
			fwrite(text + at, 1, length, out);
			continue;
		}
		for (size_t i = 0; i < length; i++)
			fprintf(out, "\\\\x%02x", (unsigned char)text[at + i]);
	}
}

/* The library's sentence begins with the name if it is about the file, not its content. */
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
