/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet.c - arbitrary contents of a store, as a member of a fleet finds them; and arbitrary
 * addresses.
 *
 * The input is split at each 0xff: the address of a store, then the rows of a limit and of
 * partitions of work, as if another program had written them; - is no row. A member joins both, and
 * refreshes.
 */
#include <weir/work.h>

#include "fleet/store/address.h"
#include "fleet/store/base64.h"
#include "fuzz.h"
#include "fleet/store/store.h"

#define INPUT_MAX 4000

/* What is left of the input. */
struct rest {
	const char *at, *end;
};

static struct rest cut(struct rest *rest)
{
	const char *mark = memchr(rest->at, 0xff, (size_t)(rest->end - rest->at));
	struct rest piece = {rest->at, mark != NULL ? mark : rest->end};

	rest->at = mark != NULL ? mark + 1 : rest->end;
	return piece;
}

static size_t size_of(struct rest piece)
{
	return (size_t)(piece.end - piece.at);
}

static void read_address(struct rest piece)
{
	char *text = text_of((const uint8_t *)piece.at, size_of(piece), INPUT_MAX);
	char why[WHY_SIZE] = "";
	struct address address;

	must(address_parse(text, &address, why) == 0 || is_sentence(why));
	free(text);
}

/* What can be parsed formats back to the same. */
static void read_base64(struct rest piece)
{
	char *bytes = allocate(size_of(piece) + 3), *text;
	size_t size;

	if (base64_decode(piece.at, size_of(piece), bytes, &size)) {
		text = allocate(base64_size(size) + 1);
		base64_encode(bytes, size, text);
		must(strlen(text) == size_of(piece));
		free(text);
	}
	free(bytes);
}

static void write_row(struct weir_store *store, const char *key, struct rest piece)
{
	const struct weir_store_write write = {key, WEIR_STORE_WRITE_PUT, piece.at, size_of(piece)};

	must(weir_store_commit(store, 0, NULL, 0, &write, 1, NULL) == 0);
}

static weir_time stand_still(const struct weir_clock *clock)
{
	(void)clock;
	return WEIR_S;
}

static void join(struct weir_fleet *fleet)
{
	struct weir_share_config limit;
	struct weir_work_config config;
	struct weir_share *share;
	struct weir_work *work;

	weir_share_config_init(&limit);
	limit.name = "limit";
	limit.capacity = 100;
	must(weir_share_join(fleet, &limit, &share, NULL, 0) == 0);
	must(weir_share_demand_set(share, 1000) == 0);
	weir_work_config_init(&config);
	config.name = "work";
	config.count = 3;
	must(weir_work_open(fleet, &config, &work, NULL, 0) == 0);
	for (unsigned i = 0; i < 3; i++) {
		char value[16];
		size_t size = sizeof(value);
		uint64_t sequence;

		(void)weir_fleet_refresh(fleet);
		(void)weir_work_load(work, 0, &sequence, value, &size);
		(void)weir_work_checkpoint(work, 0, weir_work_fence(work, 0), 1, "x", 1);
	}
	must(weir_share_units(share) <= WEIR_SHARE_UNITS_MAX);
}

static bool pass(void *arg, const struct weir_fleet_entry *entry)
{
	(void)arg;
	must(entry->name[0] != '\0');
	return true;
}

static void read_label(const char *label)
{
	must(strlen(label) <= WEIR_FLEET_LABEL_MAX && strchr(label, '\n') == NULL);
}

/* One that was cut has no full stop. */
static void read_sentence(const char *text)
{
	must(text[0] == '\0' || text[strlen(text) - 1] == '.');
}

static bool pass_template(void *arg, const char *pattern, const struct weir_fleet_limit *limit)
{
	char why[100] = "";

	(void)arg;
	must(weir_fleet_template_check(pattern, limit, why, sizeof(why)) == 0);
	return true;
}

static bool pass_member(void *arg, const struct weir_fleet_member *member)
{
	(void)arg;
	read_label(member->label);
	read_sentence(member->mismatch);
	read_sentence(member->reason);
	return true;
}

static bool pass_partition(void *arg, const struct weir_work_partition *partition)
{
	(void)arg;
	read_label(partition->owner_label);
	read_label(partition->requester_label);
	read_label(partition->rewound_by);
	return true;
}

/* As an operator sees it. */
static void watch(struct weir_store *store)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	must(weir_fleet_list(store, pass, NULL) == 0);
	(void)weir_fleet_inspect(store, "limit", &limit, pass_member, NULL);
	read_sentence(limit.reason);
	(void)weir_fleet_template_list(store, pass_template, NULL);
	weir_fleet_limit_init(&limit);
	if (weir_fleet_template_match(store, "limit", NULL, &limit) == 0)
		must(weir_fleet_template_set(store, "limit", &limit, NULL, 0) == 0);
	(void)weir_work_inspect(store, "work", NULL, pass_partition, NULL);
	(void)weir_work_rewind(store, "work", 0, 0, "x", 1, "fuzz");
	(void)weir_work_restart(store, "work", WEIR_WORK_ALL, "fuzz");
	(void)weir_work_inspect(store, "work", NULL, pass_partition, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const keys[] = {
		"limit/led",        "limit/cfg",      "limit/m/1",          "work/worker/1",
		"work/partition/0", "work/request/1", "work.checkpoints/0", "limit/drain/1",
		"limit/drained",    "work/rewound/0", "fleet/templates",    "limit/learning",
		"limit/grants",     "limit/grant/1",  "limit/allocator",
	};
	struct rest rest = {(const char *)data, (const char *)data + size}, first;
	const struct weir_clock clock = {stand_still};
	struct weir_store_config store_config;
	struct weir_fleet_config config;
	struct weir_store *store;
	struct weir_fleet *fleet;

	if (size == 0 || size > INPUT_MAX)
		return 0;
	first = cut(&rest);
	read_address(first);
	read_base64(first);
	weir_store_config_init(&store_config);
	store_config.clock = &clock;
	store_config.shm_bytes = 64 * 1024;
	must(weir_store_open(&store_config, &store, NULL, 0) == 0);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && rest.at < rest.end; i++) {
		const struct rest piece = cut(&rest);

		if (size_of(piece) != 1 || *piece.at != '-')
			write_row(store, keys[i], piece);
	}
	weir_fleet_config_init(&config);
	config.store = store;
	config.manual = 1;
	config.clock = &clock;
	config.seed = 1;
	config.label = "fuzz";
	must(weir_fleet_open(&config, &fleet, NULL, 0) == 0);
	join(fleet);
	watch(store);
	weir_fleet_close(fleet);
	weir_store_close(store);
	return 0;
}
