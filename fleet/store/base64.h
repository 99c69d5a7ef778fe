/* SPDX-License-Identifier: BSD-2-Clause */
/* Base64 with padding, as used for keys and values in etcd's JSON. */
#ifndef WEIR_FLEET_BASE64_H
#define WEIR_FLEET_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t base64_size(size_t size)
{
	return (size + 2) / 3 * 4;
}

/* text must hold base64_size() characters and a terminating zero. */
static inline void base64_encode(const void *bytes, size_t size, char *text)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *b = bytes;

	for (size_t i = 0; i < size; i += 3) {
		const uint32_t word = (uint32_t)b[i] << 16 |
				      (i + 1 < size ? (uint32_t)b[i + 1] << 8 : 0) |
				      (i + 2 < size ? b[i + 2] : 0);

		*text++ = digits[word >> 18];
		*text++ = digits[word >> 12 & 63];
		*text++ = i + 1 < size ? digits[word >> 6 & 63] : '=';
		*text++ = i + 2 < size ? digits[word & 63] : '=';
	}
	*text = '\0';
}

static inline int base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Writes at most length / 4 * 3 bytes. False: the text is not valid Base64. */
static inline bool base64_decode(const char *text, size_t length, char *bytes, size_t *size)
{
	const size_t pad = length < 4 || text[length - 1] != '=' ? 0
			   : text[length - 2] == '='             ? 2
								 : 1;

	*size = 0;
	if (length % 4 != 0)
		return false;
	for (size_t i = 0; i < length; i += 4) {
		const size_t digits = i + 4 < length ? 4 : 4 - pad;
		uint32_t word = 0;

		for (size_t j = 0; j < 4; j++) {
			const int digit = j < digits ? base64_digit(text[i + j]) : 0;

			if (digit < 0)
				return false;
			word = word << 6 | (uint32_t)digit;
		}
		for (size_t j = 0; j + 1 < digits; j++)
			bytes[(*size)++] = (char)(word >> (16 - 8 * j));
	}
	return true;
}

#endif
