/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The syntax of values in directives, and of variables at run time.
 */
#include "module.h"

bool word_is(const ngx_str_t *word, const char *text)
{
	return word->len == ngx_strlen(text) && ngx_memcmp(word->data, text, word->len) == 0;
}

bool word_is_named(const ngx_str_t *word, const char *name, ngx_str_t *value)
{
	const size_t length = ngx_strlen(name);

	if (word->len <= length || ngx_strncmp(word->data, name, length) != 0 ||
	    word->data[length] != '=')
		return false;
	value->data = word->data + length + 1;
	value->len = word->len - length - 1;
	return true;
}

bool word_is_priority(const ngx_str_t *word, int16_t *priority)
{
	const bool negative = word->len > 0 && word->data[0] == '-';
	const ngx_int_t n = ngx_atoi(word->data + negative, word->len - negative);

	if (n == NGX_ERROR || n > (negative ? -WEIR_PRIORITY_MIN : WEIR_PRIORITY_MAX))
		return false;
	*priority = (int16_t)(negative ? -n : n);
	return true;
}

bool word_is_cost(const ngx_str_t *word, uint32_t *cost)
{
	const ngx_int_t n = ngx_atoi(word->data, word->len);

	if (n == NGX_ERROR || n == 0 || n > (ngx_int_t)WEIR_LIMIT_MAX)
		return false;
	*cost = (uint32_t)n;
	return true;
}
