/* SPDX-License-Identifier: BSD-2-Clause */
/* The JSON of etcd's transactions. */

#include "fleet/store/etcd_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/store/base64.h"

#define KEY_SIZE (2 * WEIR_STORE_KEY_MAX + 4)

json_t *etcd_bytes(const void *bytes, size_t size)
{
	char *text = malloc(base64_size(size) + 1);
	json_t *string;

	if (text == NULL)
		return NULL;
	base64_encode(bytes, size, text);
	string = json_string(text);
	free(text);
	return string;
}

json_t *etcd_key(const struct etcd *e, const char *key)
{
	char full[KEY_SIZE];
	const int n = snprintf(full, sizeof(full), "%s/%s", e->name, key);

	return etcd_bytes(full, (size_t)n);
}

json_t *etcd_end_of(const struct etcd *e, const char *prefix)
{
	char full[KEY_SIZE];
	const int n = snprintf(full, sizeof(full), "%s/%s", e->name, prefix);

	full[n - 1]++; /* no carry: keys contain only characters below the highest one */
	return etcd_bytes(full, (size_t)n);
}

json_t *etcd_text_of(uint64_t number)
{
	return json_sprintf("%llu", (unsigned long long)number);
}

void etcd_session_key(uint64_t session, char *key, size_t size)
{
	(void)snprintf(key, size, SESSIONS "%llx", (unsigned long long)session);
}

json_t *etcd_is_text(const struct etcd *e, const char *key, const char *text)
{
	return json_pack("{s:o, s:s, s:s, s:o}", "key", etcd_key(e, key), "result", "EQUAL",
			 "target", "VALUE", "value", etcd_bytes(text, strlen(text)));
}

json_t *etcd_is_absent(const struct etcd *e, const char *key)
{
	return json_pack("{s:o, s:s, s:s, s:s}", "key", etcd_key(e, key), "result", "EQUAL",
			 "target", "CREATE", "create_revision", "0");
}

json_t *etcd_put(const struct etcd *e, const char *key, const void *value, size_t size,
		 uint64_t session)
{
	return json_pack("{s:{s:o, s:o, s:o}}", "request_put", "key", etcd_key(e, key), "value",
			 etcd_bytes(value, size), "lease", etcd_text_of(session));
}

json_t *etcd_erase(const struct etcd *e, const char *key)
{
	return json_pack("{s:{s:o}}", "request_delete_range", "key", etcd_key(e, key));
}

json_t *etcd_erase_all(const struct etcd *e, const char *prefix)
{
	return json_pack("{s:{s:o, s:o}}", "request_delete_range", "key", etcd_key(e, prefix),
			 "range_end", etcd_end_of(e, prefix));
}

json_t *etcd_range(const struct etcd *e, const char *key, const char *prefix)
{
	char row[KEY_SIZE];

	if (key == NULL && store_exact(prefix) > 0) {
		(void)snprintf(row, sizeof(row), "%.*s", (int)store_exact(prefix), prefix);
		key = row;
	}
	if (key != NULL)
		return json_pack("{s:{s:o}}", "request_range", "key", etcd_key(e, key));
	return json_pack("{s:{s:o, s:o}}", "request_range", "key", etcd_key(e, prefix), "range_end",
			 etcd_end_of(e, prefix));
}

static json_t *unless_null(json_t *part)
{
	return json_is_null(part) ? NULL : part;
}

json_t *etcd_transaction(json_t *compare, json_t *success, json_t *failure)
{
	if (compare == NULL || success == NULL || failure == NULL) {
		json_decref(compare);
		json_decref(success);
		json_decref(failure);
		return NULL;
	}
	return json_pack("{s:o*, s:o*, s:o*}", "compare", unless_null(compare), "success",
			 unless_null(success), "failure", unless_null(failure));
}

bool etcd_has_succeeded(const json_t *answer)
{
	return json_is_true(json_object_get(answer, "succeeded"));
}

const json_t *etcd_response(const json_t *answer, size_t index)
{
	const json_t *response = json_array_get(json_object_get(answer, "responses"), index);

	return json_object_get(response, "response_range");
}

bool etcd_value(const json_t *range, char *text, size_t size)
{
	const json_t *kv = json_array_get(json_object_get(range, "kvs"), 0);
	const json_t *value = json_object_get(kv, "value");
	size_t length;

	if (!json_is_string(value) || json_string_length(value) / 4 * 3 >= size ||
	    !base64_decode(json_string_value(value), json_string_length(value), text, &length))
		return false;
	text[length] = '\0';
	return true;
}
