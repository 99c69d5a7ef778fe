/* SPDX-License-Identifier: BSD-2-Clause */
/* Parsing addresses. No error sentence repeats the address, because it may contain a password. */

#include "fleet/store/address.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static int read_user(struct span *rest, struct address *a, char *why)
{
	struct span both, user;

	if (!cut(rest, '@', &both))
		return 0;
	if (!cut(&both, ':', &user))
		return store_say(-EINVAL, why, "The address has a user without a password.");
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
			"The address must begin with shm:, redis://, etcd:// or etcds://.");
	if (strcmp(a->scheme, "shm") == 0)
		return read_shm(rest, a, why);
	if (length(rest) < 2 || memcmp(rest.begin, "//", 2) != 0)
		return store_say(-EINVAL, why, "The address lacks // after the scheme.");
	rest.begin += 2;
	front = rest;
	if (cut(&rest, '/', &front)) {
		if (!decode(rest, a->path, sizeof(a->path)))
			return store_say(-EINVAL, why, "The address has an invalid path.");
	}
	r = read_user(&front, a, why);
	return r == 0 ? read_hosts(front, a, why) : r;
}
