/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SipHash-1-3 of 0, 1, 2, ... under the key 0, 1, 2, ... 15. The values are OpenSSL's:
 *
 * openssl mac -macopt hexkey:000102030405060708090a0b0c0d0e0f -macopt size:8
 *           -macopt c-rounds:1 -macopt d-rounds:3 -in FILE SIPHASH
 */

#include <criterion/criterion.h>

#include "lib/base/siphash.h"

Test(siphash, matches_openssl)
{
	static const struct {
		size_t size;
		uint64_t hash;
	} known[] = {
		{0, UINT64_C(0xabac0158050fc4dc)},  {1, UINT64_C(0xc9f49bf37d57ca93)},
		{7, UINT64_C(0xd3927d989bb11140)},  {8, UINT64_C(0x369095118d299a8e)},
		{15, UINT64_C(0xd320d86d2a519956)}, {16, UINT64_C(0xcc4fdd1a7d908b66)},
		{27, UINT64_C(0xa91dc74e4ade3b35)}, {63, UINT64_C(0x9d199062b7bbb3a8)},
	};
	const struct siphash_key key = {
		.k0 = UINT64_C(0x0706050403020100),
		.k1 = UINT64_C(0x0f0e0d0c0b0a0908),
	};
	unsigned char bytes[64];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)i;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		cr_assert_eq(siphash(&key, bytes, known[i].size), known[i].hash, "%zu bytes",
			     known[i].size);
}
