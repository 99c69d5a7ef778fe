/* SPDX-License-Identifier: BSD-2-Clause */
#include "processor.h"

#include <stdio.h>

/*
 * The records in hand, in seconds of the whole capacity: enough to use all of it if the other
 * processors die, and to continue while the queue does not answer.
 */
#define HAND_SECONDS 2

/* How often records are kept and abandoned ones claimed, per idle time. */
#define KEEPS 4

static struct record *record_of(struct weir_operation *operation)
{
	return (struct record *)operation;
}

/* Retry at the end of the batcher's queue. When the processor ends, others take the record. */
static void try_again(struct processor *p, struct record *record)
{
	if (weir_batcher_enqueue(p->capacity.batcher, &record->operation, 0) != 0)
		atomic_fetch_add(&p->left, 1);
}

static void send_batch(struct processor *p, struct weir_operation *first,
		       struct writer_answer *answer)
{
	for (struct weir_operation *each = first; each; each = each->next)
		writer_add(&p->writer, record_of(each)->entry.line);
	if (writer_send(&p->writer, answer) != 0) {
		atomic_fetch_add(&p->unanswered, 1);
		weir_batcher_pause(p->capacity.batcher);
	}
	if (answer->throttled)
		capacity_throttled(&p->capacity, answer->retry_after * WEIR_S);
}

/* Write what the rate has released. One request at a time is enough, since a slot is small. */
static void write_batch(void *arg, struct weir_batch batch, struct weir_operation *first,
			size_t count)
{
	struct processor *p = arg;
	struct weir_operation *next;
	struct writer_answer answer;

	send_batch(p, first, &answer);
	if (answer.throttled)
		atomic_fetch_add(&p->refused, count - answer.committed);
	for (struct weir_operation *each = first; each; each = next) {
		next = each->next;
		if (answer.committed == 0) {
			try_again(p, record_of(each));
			continue;
		}
		hand_written(&p->hand, record_of(each));
		answer.committed--;
	}
	(void)weir_batcher_done(p->capacity.batcher, batch);
}

static void take(void *arg, const struct entry *entry)
{
	struct processor *p = arg;
	struct record *record = hand_take(&p->hand, entry);

	/* No room: the record is not kept, so it is delivered again. */
	if (!record)
		return;
	record->operation = (struct weir_operation){
		.watcher = &p->watcher,
		.cost = {{record_types[entry->type].cost}},
		.flags = WEIR_OPERATION_BATCHABLE,
	};
	p->taken++;
	if (weir_batcher_enqueue(p->capacity.batcher, &record->operation, 0) != 0)
		hand_let_go(&p->hand, record);
}

static void take_claimed(void *arg, const struct entry *entry)
{
	struct processor *p = arg;

	p->claimed++;
	take(p, entry);
}

/* The number of records to take of each type, so that all fit into the hand. */
static unsigned lacking(struct processor *p)
{
	const uint64_t target = HAND_SECONDS * p->config.capacity.units;
	const uint64_t needs = weir_batcher_needs(p->capacity.batcher).units[0];
	const uint64_t room = p->hand.free_count / RECORD_TYPES;
	uint64_t cost = 0, count;

	for (unsigned i = 0; i < RECORD_TYPES; i++)
		cost += record_types[i].cost;
	count = needs < target ? (target - needs) / cost : 0;
	return (unsigned)(count < room ? count : room);
}

static bool is_time(const struct processor *p, weir_time last, weir_time now)
{
	return now - last >= p->config.idle_ms * WEIR_MS / KEEPS;
}

static void take_more(struct processor *p, weir_time now)
{
	unsigned count = lacking(p);

	/* First records of dead processors, and records of lost answers; then new ones. */
	if (count > 0 && is_time(p, p->claimed_at, now)) {
		p->claimed_at = now;
		(void)streams_claim(&p->streams, p->config.idle_ms, count, take_claimed, p);
		count = lacking(p);
	}
	if (count > 0)
		(void)streams_read(&p->streams, count, take, p);
}

static void keep(struct processor *p, weir_time now)
{
	const struct entry *entries[HAND_MAX];

	if (!is_time(p, p->kept, now))
		return;
	for (unsigned i = 0; i < RECORD_TYPES; i++)
		if (streams_keep(&p->streams, i, entries, hand_entries(&p->hand, i, entries)) != 0)
			return;
	p->kept = now;
}

static void note_written(struct processor *p)
{
	struct record *written = hand_collect(&p->hand), *next;

	for (; written; written = next) {
		next = written->next;
		written->next = p->unacknowledged;
		p->unacknowledged = written;
	}
}

/* Select the entries of a type; the room is for HAND_MAX. */
static size_t entries_of(const struct record *list, unsigned type, const struct entry **entries)
{
	size_t count = 0;

	for (; list; list = list->next)
		if (list->entry.type == type)
			entries[count++] = &list->entry;
	return count;
}

static void acknowledge(struct processor *p)
{
	const struct entry *entries[HAND_MAX];
	struct record *next;

	note_written(p);
	/* After an error all are sent again: acknowledging twice does no harm. */
	for (unsigned i = 0; i < RECORD_TYPES; i++)
		if (streams_done(&p->streams, i, entries,
				 entries_of(p->unacknowledged, i, entries)) != 0)
			return;
	for (; p->unacknowledged; p->unacknowledged = next) {
		next = p->unacknowledged->next;
		hand_let_go(&p->hand, p->unacknowledged);
		p->acknowledged++;
	}
}

int processor_open(struct processor *p, const struct processor_config *config)
{
	struct capacity_config capacity = config->capacity;

	*p = (struct processor){.config = *config};
	p->watcher = (struct weir_batch_handler){
		.process = write_batch,
		.arg = p,
		.batch_max = WRITER_RECORDS_MAX,
	};
	hand_init(&p->hand);
	capacity.operations = HAND_MAX;
	if (streams_open(&p->streams, config->redis, config->name) != 0 ||
	    writer_open(&p->writer, config->database, config->name) != 0)
		return -1;
	if (capacity_open(&p->capacity, &capacity) != 0) {
		writer_close(&p->writer);
		return -1;
	}
	/* The first records set the demand before the share starts, which saves a refresh. */
	processor_turn(p);
	(void)weir_fleet_refresh(p->capacity.fleet);
	return 0;
}

void processor_turn(struct processor *p)
{
	const weir_time now = weir_now();

	acknowledge(p);
	keep(p, now);
	take_more(p, now);
}

void processor_close(struct processor *p)
{
	(void)weir_batcher_discard(p->capacity.batcher, NULL, NULL);
	(void)weir_batcher_drain(p->capacity.batcher, WEIR_FOREVER);
	acknowledge(p);
	capacity_close(&p->capacity);
	writer_close(&p->writer);
	streams_close(&p->streams);
}
