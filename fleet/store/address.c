/* SPDX-License-Identifier: BSD-2-Clause */
/* Parsing addresses. No error sentence repeats the address, because it may contain a password. */

#include "fleet/store/address.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fleet/store/store.h"

/* A span of the text. */
struct span {
	const char *begin, *end;
};

static size_t length(struct span s)
{
	return (size_t)(s.end - s.begin);
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decode percent escapes: %40 is @. False: the result does not fit, or is not text. */
static bool decode(struct span s, char *to, size_t size)
{
	size_t n = 0;

	for (const char *p = s.begin; p < s.end; p++) {
		char c = *p;

		if (c == '%') {
			if (s.end - p < 3 || hex(p[1]) < 0 || hex(p[2]) < 0)
				return false;
			c = (char)(hex(p[1]) * 16 + hex(p[2]));
			p += 2;
		}
		if ((unsigned char)c < ' ' || c == 0x7f || n + 1 >= size)
			return false;
		to[n++] = c;
	}
	to[n] = '\0';
	return true;
}

/* Split off the text before mark, which is dropped. False: there is no mark. */
static bool cut(struct span *rest, char mark, struct span *before)
{
	const char *at = memchr(rest->begin, mark, length(*rest));

	if (at == NULL)
		return false;
	*before = (struct span){rest->begin, at};
	rest->begin = at + 1;
	return true;
}

static bool is_setting(struct span s, const char *name)
{
	return length(s) == strlen(name) && memcmp(s.begin, name, length(s)) == 0;
}

static int read_setting(struct span setting, struct address *a, char *why)
{
	struct span name = setting;
	bool good = false;

	if (cut(&setting, '=', &name) && length(setting) > 0) {
		if (is_setting(name, "password-file"))
			good = decode(setting, a->password_file, sizeof(a->password_file));
		else if (is_setting(name, "password-env"))
			good = decode(setting, a->password_variable, sizeof(a->password_variable));
	}
	if (!good)
		return store_say(-EINVAL, why,
				 "After the ? of the address there must be password-file=PATH or "
				 "password-env=NAME.");
	return 0;
}

/*
 * Split off what follows a ?. In a password before an @ there may be a ?, and in the path of a file
 * an @.
 */
static int read_settings(struct span *rest, struct address *a, char *why)
{
	const char *slash = memchr(rest->begin, '/', length(*rest));
	const struct span front = {rest->begin, slash != NULL ? slash : rest->end};
	const char *at = memchr(front.begin, '@', length(front));
	struct span settings = {at != NULL ? at : rest->begin, rest->end}, one;
	int r = 0;

	if (!cut(&settings, '?', &one))
		return 0;
	rest->end = one.end;
	while (r == 0 && cut(&settings, '&', &one))
		r = read_setting(one, a, why);
	if (r == 0)
		r = read_setting(settings, a, why);
	if (r == 0 && a->password_file[0] != '\0' && a->password_variable[0] != '\0')
		return store_say(-EINVAL, why,
				 "The address has both password-file and password-env.");
	return r;
}

static bool has_source(const struct address *a)
{
	return a->password_file[0] != '\0' || a->password_variable[0] != '\0';
}

static int read_user(struct span *rest, struct address *a, char *why)
{
	struct span both, user;

	if (!cut(rest, '@', &both))
		return 0;
	if (!cut(&both, ':', &user)) {
		user = both;
		both.begin = both.end;
		if (!has_source(a))
			return store_say(-EINVAL, why,
					 "The address has a user without a password.");
	} else if (has_source(a)) {
		return store_say(-EINVAL, why,
				 "The address has a password, and says where else one is.");
	}
	if (!decode(user, a->user, sizeof(a->user)) ||
	    !decode(both, a->password, sizeof(a->password)))
		return store_say(-EINVAL, why, "The address has an invalid user or password.");
	return 0;
}

static bool is_host(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_';
}

/* An IPv6 address is in brackets. False: no valid name. */
static bool read_name(struct span *s, struct address_host *host)
{
	struct span name = {s->begin, s->begin};
	const bool six = length(*s) > 0 && *s->begin == '[';

	if (six) {
		name.begin++;
		for (name.end = name.begin; name.end < s->end && *name.end != ']'; name.end++)
			if (!isxdigit((unsigned char)*name.end) && *name.end != ':')
				return false;
		if (name.end == s->end)
			return false;
		s->begin = name.end + 1;
	} else {
		while (name.end < s->end && is_host(*name.end))
			name.end++;
		s->begin = name.end;
	}
	return length(name) > 0 && decode(name, host->name, sizeof(host->name));
}

static int read_host(struct span s, struct address *a, char *why)
{
	struct address_host *host = &a->hosts[a->count];
	unsigned port = 0;

	if (a->count == ADDRESS_HOSTS_MAX)
		return store_say(-EINVAL, why, "The address has more than %d hosts.",
				 ADDRESS_HOSTS_MAX);
	if (!read_name(&s, host))
		return store_say(-EINVAL, why, "The address has an invalid host name.");
	if (length(s) > 0) {
		if (*s.begin++ != ':' || length(s) == 0 || length(s) > 5)
			return store_say(-EINVAL, why,
					 "The address has a port that is not a number.");
		for (; s.begin < s.end; s.begin++) {
			if (!isdigit((unsigned char)*s.begin))
				return store_say(-EINVAL, why,
						 "The address has a port that is not a number.");
			port = port * 10 + (unsigned)(*s.begin - '0');
		}
		if (port == 0 || port > UINT16_MAX)
			return store_say(-EINVAL, why,
					 "The address has a port that is not from 1 to 65535.");
	}
	host->port = (uint16_t)port;
	a->count++;
	return 0;
}

static int read_hosts(struct span rest, struct address *a, char *why)
{
	struct span one;
	int r = 0;

	while (r == 0 && cut(&rest, ',', &one))
		r = read_host(one, a, why);
	return r == 0 ? read_host(rest, a, why) : r;
}

static int read_shm(struct span rest, struct address *a, char *why)
{
	if (length(rest) < 2 || *rest.begin != '/' ||
	    memchr(rest.begin + 1, '/', length(rest) - 1) != NULL ||
	    !decode(rest, a->path, sizeof(a->path)))
		return store_say(-EINVAL, why,
				 "After \"shm:\" there must be a / and a name without a /.");
	return 0;
}

int address_parse(const char *text, struct address *a, char *why)
{
	struct span rest, scheme, front;
	int r;

	memset(a, 0, sizeof(*a));
	if (text == NULL)
		return 0;
	rest = (struct span){text, text + strlen(text)};
	if (!cut(&rest, ':', &scheme) || length(scheme) == 0 ||
	    !decode(scheme, a->scheme, sizeof(a->scheme)))
		return store_say(
			-EINVAL, why,
			"The address must begin with shm:, redis://, redis-sentinel://, etcd:// or "
			"etcds://.");
	if (strcmp(a->scheme, "shm") == 0)
		return read_shm(rest, a, why);
	if (length(rest) < 2 || memcmp(rest.begin, "//", 2) != 0)
		return store_say(-EINVAL, why, "The address lacks // after the scheme.");
	rest.begin += 2;
	r = read_settings(&rest, a, why);
	if (r != 0)
		return r;
	front = rest;
	if (cut(&rest, '/', &front)) {
		if (!decode(rest, a->path, sizeof(a->path)))
			return store_say(-EINVAL, why, "The address has an invalid path.");
	}
	r = read_user(&front, a, why);
	return r == 0 ? read_hosts(front, a, why) : r;
}

bool address_has_password(const struct address *a)
{
	return a->password[0] != '\0' || has_source(a);
}

/* Read what fits, and one byte more. Returns the number of bytes, or -1. */
static ssize_t read_file(const char *path, char *text, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	size_t used = 0;
	ssize_t n = 1;

	if (fd < 0)
		return -1;
	while (n > 0 && used < size) {
		n = read(fd, text + used, size - used);
		used += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	return n < 0 ? -1 : (ssize_t)used;
}

/* The first line of the file. */
static int password_of_file(const char *path, char password[PASSWORD_SIZE], char *why)
{
	char text[PASSWORD_SIZE + 2]; /* a longest password ends with a line break */
	const ssize_t size = read_file(path, text, sizeof(text) - 1);
	size_t end;
	int r = 0;

	if (size < 0)
		return store_say(-EACCES, why, "The password file cannot be read: %s.",
				 strerror(errno));
	text[size] = '\0';
	end = strcspn(text, "\r\n");
	if (end == 0 || end >= PASSWORD_SIZE)
		r = store_say(-EACCES, why,
			      "The first line of the password file is not 1 to %d bytes long.",
			      PASSWORD_SIZE - 1);
	text[r == 0 ? end : 0] = '\0';
	memcpy(password, text, strlen(text) + 1);
	explicit_bzero(text, sizeof(text));
	return r;
}

static int password_of_variable(const char *name, char password[PASSWORD_SIZE], char *why)
{
	const char *text = getenv(name);
	const size_t size = text != NULL ? strlen(text) : 0;

	if (size == 0 || size >= PASSWORD_SIZE)
		return store_say(-EACCES, why,
				 "The environment variable for the password is not 1 to %d bytes "
				 "long, or not set.",
				 PASSWORD_SIZE - 1);
	memcpy(password, text, size + 1);
	return 0;
}

int address_password(const struct address *a, char password[PASSWORD_SIZE], char *why)
{
	password[0] = '\0';
	if (a->password_file[0] != '\0')
		return password_of_file(a->password_file, password, why);
	if (a->password_variable[0] != '\0')
		return password_of_variable(a->password_variable, password, why);
	memcpy(password, a->password, sizeof(a->password));
	return 0;
}
