/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shm.c - arbitrary bytes as a shared limiter: as they are, or overwriting part of a valid one,
 * which may also be truncated. In half of the latter the checksum is corrected, so that more than
 * the checksum is tested. If the block can be attached to, it is observed, and restored before
 * detaching: members trust what other members write, but observers do not.
 */
#include "fuzz.h"

#include <weir/weir.h>

#include "lib/limiter/saved_state.h"
#include "lib/shm/shm.h"

/* Taken from the front of the input. */
struct choice {
	/*
	 * bit 0: start with a valid block; 1: correct its checksum; 2: no configuration; 3: not
	 * truncated
	 */
	uint8_t way;
	/* bit 0: partitions; 1: priorities; 2: a queue; 3 to 7: the limit */
	uint8_t shape;
	uint16_t cut; /* bytes cut off at the end */
	uint32_t at;  /* where to overwrite it */
};

static const struct weir_partition parts[] = {{.name = "a", .share = 0.5}, {.name = "b"}};

static struct weir_config config_of(uint8_t shape)
{
	const struct weir_limit_ops *ops = weir_limit_at(shape >> 3);
	struct weir_config config;

	weir_config_init(&config);
	config.limit = ops;
	config.stripes = 1;
	config.shed = (shape & 2) != 0;
	config.queue = (shape & 4) != 0 ? 2 : 0;
	if ((shape & 1) != 0) {
		config.partitions = parts;
		config.partition_count = 2;
	}
	return config;
}

static void *aligned(size_t size)
{
	void *memory = aligned_alloc(WEIR_ALIGN, (size + WEIR_ALIGN - 1) / WEIR_ALIGN * WEIR_ALIGN);

	must(memory != NULL);
	return memory;
}

static bool visit(void *arg, const struct weir_shm_member *member)
{
	++*(size_t *)arg;
	return member->permits <= UINT32_MAX;
}

static void look_at(const struct weir_limiter *limiter)
{
	struct weir_partition_snapshot part;
	struct weir_snapshot snapshot;
	struct weir_shm_info info;
	size_t members = 0;

	weir_snapshot_init(&snapshot);
	weir_snapshot_take(limiter, &snapshot);
	must(snapshot.last.count <= WEIR_NUMBERS_MAX);
	for (unsigned i = 0; i < weir_partition_count(limiter); i++) {
		weir_partition_snapshot_init(&part);
		must(weir_partition_snapshot_take(limiter, i, &part) == 0);
		must(strlen(part.name) <= WEIR_PARTITION_NAME_MAX);
	}
	weir_shm_info_init(&info);
	must(weir_shm_info_take(limiter, &info) == 0);
	must(weir_shm_visit(limiter, visit, &members) == members);
	(void)weir_limit(limiter);
	(void)weir_inflight(limiter);
	(void)weir_waiting(limiter);
}

static void put_sum_right(struct shm_head *head)
{
	head->check = saved_hash(SAVED_HASH_BEGIN, &head->constants, sizeof(head->constants));
}

/* Attach, observe, and detach from a block that has been restored. */
static void attach(void *block, size_t size, const struct weir_config *config, const void *whole)
{
	struct weir_limiter *limiter;
	char why[200] = "";
	int r = weir_shm_attach(block, size, config, &limiter, why, sizeof(why));

	if (r != 0) {
		must((r == -EPROTO || r == -ENOSPC) && limiter == NULL && is_sentence(why));
		return;
	}
	look_at(limiter);
	memcpy(block, whole, size);
	weir_shm_detach(limiter);
}

static void observe(const void *block, size_t size)
{
	struct weir_limiter *limiter;
	char why[200] = "";

	if (weir_shm_observe(block, size, &limiter, why, sizeof(why)) != 0) {
		must(limiter == NULL && is_sentence(why));
		return;
	}
	look_at(limiter);
	weir_shm_detach(limiter);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weir_config config;
	struct choice choice;
	size_t whole_size, block_size;
	char *whole, *block;

	if (size < sizeof(choice))
		return 0;
	memcpy(&choice, data, sizeof(choice));
	data += sizeof(choice);
	size -= sizeof(choice);
	if (weir_limit_at(choice.shape >> 3) == NULL)
		return 0;
	config = config_of(choice.shape);
	whole_size = weir_shm_size(&config, 2);
	must(whole_size > 0);
	whole = aligned(whole_size);
	memset(whole, 0, whole_size);
	if ((choice.way & 1) != 0)
		must(weir_shm_init(whole, whole_size, &config, 2, NULL, 0) == 0);

	block_size = whole_size - choice.cut % whole_size;
	if ((choice.way & 8) != 0)
		block_size = whole_size;
	block = aligned(block_size);
	memcpy(block, whole, block_size);
	choice.at %= (uint32_t)block_size;
	memcpy(block + choice.at, data,
	       size < block_size - choice.at ? size : block_size - choice.at);
	if ((choice.way & 2) != 0 && block_size >= sizeof(struct shm_head))
		put_sum_right((struct shm_head *)(void *)block);
	observe(block, block_size);
	attach(block, block_size, (choice.way & 4) != 0 ? NULL : &config, whole);
	free(block);
	free(whole);
	return 0;
}
