/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry with a hash that is the same for all keys: only the comparison distinguishes them.
 */

#include <stdio.h>

#include <criterion/criterion.h>

#include "lib/base/siphash.h"

#define siphash(key, bytes, size) ((void)(key), (void)(bytes), (void)(size), UINT64_C(1))
#include "lib/extra/registry.c"

#define MAX_KEYS 40

static unsigned make_key(unsigned i, unsigned char key[WEIR_KEY_MAX])
{
	unsigned size = i % 20; /* two keys of each length, which differ in their last byte */

	memset(key, 0, WEIR_KEY_MAX);
	if (i >= 20 && size > 0)
		key[size - 1] = 1;
	return size;
}

Test(registry_collisions, keys_are_compared_to_the_last_byte)
{
	struct weir_limiter *limiters[MAX_KEYS], *found;
	unsigned char key[WEIR_KEY_MAX];
	struct weir_registry *r;

	cr_assert_eq(weir_registry_create(NULL, &r), 0);
	for (unsigned i = 0; i < MAX_KEYS; i++)
		cr_assert_eq(weir_registry_get(r, key, make_key(i, key), &limiters[i]), 0);
	cr_assert_eq(r->made, MAX_KEYS - 1, "the empty key is one");
	for (unsigned i = 0; i < MAX_KEYS; i++) {
		cr_assert_eq(weir_registry_find(r, key, make_key(i, key), &found), 0);
		cr_assert_eq(found, limiters[i], "key %u", i);
		weir_registry_put(r, found);
		weir_registry_put(r, found);
	}
	cr_assert_eq(weir_registry_destroy(r), 0);
}

Test(registry_collisions, a_full_map_refuses)
{
	unsigned char key[2];
	struct weir_limiter *l;
	struct weir_registry *r;
	int error = 0;
	unsigned made;

	cr_assert_eq(weir_registry_create(NULL, &r), 0);
	for (made = 0; made < 1024; made++) {
		key[0] = (unsigned char)made;
		key[1] = (unsigned char)(made >> 8);
		error = weir_registry_get(r, key, sizeof(key), &l);
		if (error != 0)
			break;
		weir_registry_put(r, l);
	}
	cr_assert_eq(error, -ENOMEM, "after %u", made);
	cr_assert_geq(made, 64);
	cr_assert_eq(r->refused, 1);
	for (unsigned i = 0; i < made; i++) {
		key[0] = (unsigned char)i;
		key[1] = (unsigned char)(i >> 8);
		cr_assert_eq(weir_registry_find(r, key, sizeof(key), &l), 0);
		weir_registry_put(r, l);
	}
	cr_assert_eq(weir_registry_destroy(r), 0);
}
