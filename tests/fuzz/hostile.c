/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hostile.c - a real shared limiter, into which another process stores arbitrary bytes: before
 * others attach, between their operations, and while these run. Whatever the bytes are, the others
 * stay within the block, which lies between pages that cannot be accessed, cause no undefined
 * behaviour, and come to an end.
 *
 * A separate thread changes bytes while operations run, so such a run cannot be repeated exactly,
 * and a race detector reports races that are intended.
 */
#include "fuzz.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weir/weir.h>

#include "lib/limiter/saved_state.h"
#include "lib/shm/shm.h"

#define MEMBERS   3
#define OPS_MAX   200
#define GUARD     ((size_t)64 << 20)
#define TOKENS    8
#define WRITE_MAX 16

/* Taken from the front of the input. */
struct choice {
	uint8_t limit;
	/*
	 * bits 0 and 1: partitions; 2 and 3: a queue; 4: priorities; 5: a quantile; 6: windows of
	 * one sample; 7: a burst
	 */
	uint8_t shape;
	uint8_t stripes; /* bits 0 and 1; bit 2: smoothing */
	uint8_t way;     /* bit 0: bytes also change during operations */
};

/* The rest of the input. */
struct input {
	const uint8_t *at;
	size_t left;
};

struct stage {
	struct weir_config config;
	void *block;
	size_t size;
	struct weir_limiter *map; /* a handle that is only used to find the parts of the block */
	struct weir_limiter *limiter[2];
	struct weir_token token[TOKENS];
	struct weir_wait wait[TOKENS];
	weir_time now;
	uint64_t draw;
	_Atomic bool over;
};

static uint64_t take(struct input *in, size_t size)
{
	uint64_t value = 0;

	size = size < in->left ? size : in->left;
	memcpy(&value, in->at, size);
	in->at += size;
	in->left -= size;
	return value;
}

static const struct weir_partition parts[] = {
	{.name = "a", .share = 0.5, .cap = 0.75, .reject_delay = WEIR_MS},
	{.name = "b", .share = 0.1},
	{.name = "c"}};

static unsigned limits(void)
{
	unsigned count = 0;

	while (weir_limit_at(count) != NULL)
		count++;
	return count;
}

static struct weir_config config_of(const struct choice *choice)
{
	static const uint32_t queue[] = {0, 2, 70, 130};
	struct weir_config config;

	weir_config_init(&config);
	config.limit = weir_limit_at(choice->limit % limits());
	config.partitions = parts;
	config.partition_count = choice->shape & 3;
	config.queue = queue[choice->shape >> 2 & 3];
	config.order = (enum weir_order)(choice->limit % 3);
	config.shed = choice->shape >> 4 & 1;
	config.rtt = (choice->shape & 32) != 0 ? WEIR_RTT_QUANTILE : WEIR_RTT_DEFAULT;
	config.windowing = (choice->shape & 64) != 0 ? WEIR_WINDOW_SAMPLE : WEIR_WINDOW_DEFAULT;
	config.burst = choice->shape >> 7;
	config.stripes = UINT32_C(1) << (choice->stripes & 3);
	config.rtt_smoothing = (choice->stripes & 4) != 0 ? 0.5 : 0;
	return config;
}

/* Memory that ends next to inaccessible pages, and begins nearly next to some. */
static void *guarded(size_t size, size_t *whole)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *area;

	*whole = (size + page - 1) / page * page;
	area = mmap(NULL, 2 * GUARD + *whole, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	must(area != MAP_FAILED);
	must(mprotect(area + GUARD, *whole, PROT_READ | PROT_WRITE) == 0);
	return area + GUARD + *whole - size;
}

static void put_away(void *block, size_t size, size_t whole)
{
	must(munmap((char *)block + size - whole - GUARD, 2 * GUARD + whole) == 0);
}

/* Some part of the block. */
struct region {
	const void *at;
	size_t size;
};

static size_t regions_of(const struct stage *s, struct region *r)
{
	const struct weir_limiter *l = s->map;
	const struct queueing *q = &l->queueing;
	const uint32_t stripes = l->sampling.config.stripes;
	size_t n = 0;

	r[n++] = (struct region){s->block, s->size};
	r[n++] = (struct region){s->block, sizeof(struct shm_head)};
	r[n++] = (struct region){l->leasing.leases, MEMBERS * sizeof(struct lease)};
	r[n++] = (struct region){l->leasing.holdings,
				 (size_t)MEMBERS * l->leasing.stride * sizeof(struct holding)};
	r[n++] = (struct region){l->leasing.audit, sizeof(struct audit)};
	r[n++] = (struct region){l->admission.gate, sizeof(struct gate)};
	r[n++] = (struct region){l->admission.room, sizeof(struct room)};
	r[n++] = (struct region){l->admission.parts, l->admission.count * sizeof(struct part)};
	r[n++] = (struct region){l->shedding.rankings, l->shedding.parts * sizeof(struct ranking)};
	r[n++] = (struct region){l->runtime, sizeof(struct limit_runtime)};
	r[n++] = (struct region){l->stored_state, l->ops->state_size};
	r[n++] = (struct region){l->published, sizeof(struct published)};
	r[n++] = (struct region){l->sampling.sampler, sizeof(struct sampler)};
	r[n++] = (struct region){l->sampling.stripes, stripes * sizeof(struct stripe)};
	r[n++] = (struct region){l->sampling.lanes,
				 l->sampling.lanes != NULL ? stripes * sizeof(struct lane) : 0};
	r[n++] = (struct region){q->queue, sizeof(struct queue)};
	r[n++] = (struct region){q->rows, q->config.rows * sizeof(struct row)};
	r[n++] = (struct region){q->slots, q->config.slots * sizeof(struct slot)};
	r[n++] = (struct region){q->free, (q->config.slots + 63) / 64 * sizeof(uint64_t)};
	r[n++] = (struct region){q->fresh, (q->config.slots + 63) / 64 * sizeof(uint64_t)};
	return n;
}

#define REGIONS 20

static void forge(const void *at, uint8_t byte)
{
	*(volatile uint8_t *)(uintptr_t)at = byte;
}

static void forge_bytes(const struct stage *s, uint64_t which, uint64_t where, const uint8_t *bytes,
			size_t size)
{
	struct region r[REGIONS];
	const size_t n = regions_of(s, r);
	const struct region *in = &r[which % n];

	if (in->size == 0)
		return;
	where %= in->size;
	for (size_t i = 0; i < size && where + i < in->size; i++)
		forge((const char *)in->at + where + i, bytes[i]);
}

static uint64_t draw(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

/* The hostile process, while the others work. They read the head once, as they attach. */
static void *forge_meanwhile(void *arg)
{
	struct stage *s = arg;
	struct region r[REGIONS];
	const size_t n = regions_of(s, r);

	while (!atomic_load_explicit(&s->over, memory_order_relaxed)) {
		const uint64_t which = draw(&s->draw), value = draw(&s->draw);
		const struct region *in = &r[2 + which % (n - 2)];
		const uint64_t bytes = (which >> 32 & 3) == 0   ? 0
				       : (which >> 32 & 3) == 1 ? UINT64_MAX
								: value;

		if (in->size == 0)
			continue;
		for (size_t i = 0; i < 1 + (which >> 40) % 8; i++)
			forge((const char *)in->at + ((value >> 3) + i) % in->size,
			      (uint8_t)(bytes >> i * 8));
	}
	return NULL;
}

/* So that more than the checksum is tested. */
static void put_head_right(const struct stage *s)
{
	struct shm_head *head = s->block;
	const struct shm_constants *c = &head->constants;

	head->check = saved_hash(SAVED_HASH_BEGIN, c, sizeof(*c));
	atomic_store(&head->ready, SHM_READY);
}

static bool visit(void *arg, const struct weir_shm_member *member)
{
	++*(size_t *)arg;
	return member->number >= 1;
}

static void print(const struct weir_limiter *limiter)
{
	const struct weir_label label = {.name = "name", .value = "any"};
	struct weir_metrics *metrics;
	char text[1000];

	(void)weir_limiter_format(limiter, text, sizeof(text));
	must(weir_metrics_create(&metrics) == 0);
	/* Partitions' names may not be UTF-8. */
	if (weir_metrics_add(metrics, limiter, &label, 1) == 0)
		(void)weir_metrics_text(metrics, WEIR_OPENMETRICS, text, sizeof(text));
	weir_metrics_destroy(metrics);
}

static void look_at(const struct weir_limiter *limiter)
{
	struct weir_partition_snapshot part;
	struct weir_snapshot snapshot;
	struct weir_shm_info info;
	size_t members = 0, visited;

	weir_snapshot_init(&snapshot);
	weir_snapshot_take(limiter, &snapshot);
	must(snapshot.last.count <= WEIR_NUMBERS_MAX);
	for (uint32_t i = 0; i < snapshot.last.count; i++)
		must(strlen(snapshot.last.names[i]) > 0);
	for (unsigned i = 0; i < weir_partition_count(limiter); i++) {
		weir_partition_snapshot_init(&part);
		must(weir_partition_snapshot_take(limiter, i, &part) == 0);
		must(strlen(part.name) <= WEIR_PARTITION_NAME_MAX);
	}
	weir_shm_info_init(&info);
	must(weir_shm_info_take(limiter, &info) == 0);
	visited = weir_shm_visit(limiter, visit, &members);
	must(visited == members);
	must(weir_limit(limiter) <= WEIR_LIMIT_MAX);
	(void)weir_inflight(limiter);
	(void)weir_waiting(limiter);
	print(limiter);
}

/* A process that attaches meanwhile: the head is the forged one. */
static void come_and_go(const struct stage *s, bool knows, bool takes_part)
{
	struct weir_limiter *limiter;
	char why[200] = "";
	int r;

	put_head_right(s);
	r = takes_part ? weir_shm_attach(s->block, s->size, knows ? &s->config : NULL, &limiter,
					 why, sizeof(why))
		       : weir_shm_observe(s->block, s->size, &limiter, why, sizeof(why));
	if (r != 0) {
		must(limiter == NULL && is_sentence(why));
		return;
	}
	look_at(limiter);
	weir_shm_detach(limiter);
}

static void save_and_load(struct stage *s, struct weir_limiter *l)
{
	unsigned char saved[WEIR_SAVED_MAX];
	struct weir_limiter *own;
	int size = weir_limiter_save(l, saved, sizeof(saved));

	/* The block says that a living process owns the window, and it never releases it. */
	if (size == -EAGAIN)
		return;
	must(size > 0);
	must(weir_limiter_create(&s->config, &own) == 0);
	(void)!weir_limiter_load(own, saved, (size_t)size, 0, NULL, 0);
	for (int i = 1; i < 5; i++)
		weir_sample_at(own, s->now, s->now + (weir_dur)i * WEIR_S, 3, WEIR_SUCCESS);
	weir_limiter_destroy(own);
	(void)!weir_limiter_load(l, saved, (size_t)size, 0, NULL, 0);
}

/* Operations on the whole limiter. */
static void manage(struct stage *s, struct weir_limiter *l, uint8_t which, uint64_t number)
{
	struct weir_shm_reaped reaped;

	switch (which % 10) {
	case 0:
		(void)weir_limit_set(l, (uint32_t)number);
		break;
	case 1:
		(void)weir_limit_cap(l, (uint32_t)number % (2 * WEIR_LIMIT_MAX));
		break;
	case 2:
		(void)weir_partitions_set(l, parts, (uint32_t)number % 4, NULL, 0);
		break;
	case 3:
		save_and_load(s, l);
		break;
	case 4:
		(void)weir_shm_reap_at(l, s->now, &reaped);
		break;
	case 5:
		(void)weir_shm_evict(l, (uint32_t)number % (MEMBERS + 2), &reaped);
		break;
	case 6:
		(void)weir_shm_listen(l, weir_now() + number % WEIR_US);
		break;
	case 7:
		weir_shadow_set(l, number % 2 != 0);
		break;
	case 8:
		must(weir_delay_begin(l, (unsigned)number % 4) <= 3600 * WEIR_S);
		break;
	default:
		weir_delay_end(l, (unsigned)number % 4);
		break;
	}
}

/* Operations on one call. */
static void call(struct stage *s, struct weir_limiter *l, uint8_t which, uint64_t number)
{
	const struct weir_call call = {
		.partition = (uint16_t)(number >> 8 & 3),
		.priority = (int16_t)((int)(number >> 16 & 7) - 4),
		.cost = (uint32_t)(number >> 24 & 7),
		.flags = (number >> 28 & 15) == 15 ? WEIR_CALL_BYPASS : 0,
	};
	struct weir_token *token = &s->token[number % TOKENS];
	struct weir_wait *wait = &s->wait[number % TOKENS];

	switch (which % 9) {
	case 0:
		(void)!weir_try_acquire_for_at(l, &call, s->now, token);
		break;
	case 1:
		(void)!weir_acquire_for(l, &call, weir_now() + 20 * WEIR_US, token);
		break;
	case 2:
		(void)!weir_enqueue_for_at(l, &call, s->now, NULL, NULL, wait);
		must(wait->stamp == 0 || wait->slot < s->config.queue);
		break;
	case 3:
		(void)!weir_poll_at(l, s->now, wait, token);
		break;
	case 4:
		(void)!weir_cancel_at(l, s->now, wait, token);
		break;
	case 5:
		weir_queued(l, token, number);
		(void)weir_detach(l, token);
		break;
	case 6:
		weir_sample_at(l, s->now - number % WEIR_S, s->now, (uint32_t)(number >> 8) % 1000,
			       (enum weir_outcome)(number >> 32 & 7));
		break;
	default:
		weir_release_at(l, s->now, token, (enum weir_outcome)(number >> 32 & 7));
		break;
	}
	must(token->partition <= WEIR_PARTITIONS_MAX);
}

static void step(struct stage *s, struct input *in)
{
	const uint8_t op = (uint8_t)take(in, 1);
	struct weir_limiter *l = s->limiter[op >> 7];
	uint8_t bytes[WRITE_MAX];
	uint64_t number;

	switch (op & 7) {
	case 0:
	case 1: {
		const uint64_t which = take(in, 1), where = take(in, 2);
		const size_t size = 1 + take(in, 1) % WRITE_MAX;

		for (size_t i = 0; i < size; i++)
			bytes[i] = (uint8_t)take(in, 1);
		forge_bytes(s, which, where, bytes, size);
		break;
	}
	case 2:
		s->now += UINT64_C(1) << (op >> 3 & 15) << (op >> 3 & 15);
		break;
	case 3:
		manage(s, l, (uint8_t)(op >> 3 & 15), take(in, 5));
		break;
	case 4:
		look_at(l);
		break;
	case 5:
		come_and_go(s, (op & 16) != 0, (op & 8) != 0);
		break;
	default:
		number = take(in, 5);
		call(s, l, (uint8_t)(op >> 3 & 15), number);
		break;
	}
}

static void play(struct stage *s, struct input *in, bool meanwhile)
{
	pthread_t other;

	if (meanwhile)
		must(pthread_create(&other, NULL, forge_meanwhile, s) == 0);
	for (int i = 0; i < OPS_MAX && in->left > 0; i++)
		step(s, in);
	for (int i = 0; i < 2; i++)
		weir_shm_detach(s->limiter[i]);
	atomic_store(&s->over, true);
	if (meanwhile)
		must(pthread_join(other, NULL) == 0);
	weir_shm_detach(s->map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stage s = {.now = weir_now()};
	struct choice choice;
	struct input in;
	size_t whole;

	if (size < sizeof(choice))
		return 0;
	memcpy(&choice, data, sizeof(choice));
	in = (struct input){.at = data + sizeof(choice), .left = size - sizeof(choice)};
	s.config = config_of(&choice);
	s.size = weir_shm_size(&s.config, MEMBERS);
	s.draw = saved_hash(SAVED_HASH_BEGIN, data, size) | 1;
	must(s.size > 0);
	s.block = guarded(s.size, &whole);
	must(weir_shm_init(s.block, s.size, &s.config, MEMBERS, NULL, 0) == 0);
	must(weir_shm_observe(s.block, s.size, &s.map, NULL, 0) == 0);
	for (int i = 0; i < 2; i++)
		must(weir_shm_attach(s.block, s.size, &s.config, &s.limiter[i], NULL, 0) == 0);
	play(&s, &in, (choice.way & 1) != 0);
	put_away(s.block, s.size, whole);
	return 0;
}
