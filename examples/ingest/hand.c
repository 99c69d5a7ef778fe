/* SPDX-License-Identifier: BSD-2-Clause */
#include "hand.h"

void hand_init(struct hand *hand)
{
	hand->free = NULL;
	hand->free_count = 0;
	hand->written = NULL;
	pthread_mutex_init(&hand->lock, NULL);
	for (size_t i = 0; i < HAND_MAX; i++)
		hand_let_go(hand, &hand->records[i]);
}

struct record *hand_take(struct hand *hand, const struct entry *entry)
{
	struct record *record = hand->free;

	if (!record)
		return NULL;
	hand->free = record->next;
	hand->free_count--;
	*record = (struct record){.entry = *entry, .in_hand = true};
	return record;
}

void hand_let_go(struct hand *hand, struct record *record)
{
	record->in_hand = false;
	record->next = hand->free;
	hand->free = record;
	hand->free_count++;
}

void hand_written(struct hand *hand, struct record *record)
{
	pthread_mutex_lock(&hand->lock);
	record->next = hand->written;
	hand->written = record;
	pthread_mutex_unlock(&hand->lock);
}

struct record *hand_collect(struct hand *hand)
{
	struct record *written;

	pthread_mutex_lock(&hand->lock);
	written = hand->written;
	hand->written = NULL;
	pthread_mutex_unlock(&hand->lock);
	return written;
}

size_t hand_entries(const struct hand *hand, unsigned type, const struct entry **entries)
{
	size_t count = 0;

	for (size_t i = 0; i < HAND_MAX; i++)
		if (hand->records[i].in_hand && hand->records[i].entry.type == type)
			entries[count++] = &hand->records[i].entry;
	return count;
}
