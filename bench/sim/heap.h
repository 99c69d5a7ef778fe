/*
 * heap.h - an ordered set of things by a number: a binary heap.
 *
 * Whoever is to be in one has a struct heap_node as its first member. Each node knows its
 * place, so that taking out one in the middle costs no search. Those of the same key leave in the
 * order they came in.
 */
#ifndef HEAP_H
#define HEAP_H

#include <stddef.h>
#include <stdint.h>

struct heap_node {
	uint64_t key;
	uint64_t serial;
	size_t place; /* from 1; 0: it is in no heap */
};

/* Of all zeroes it is empty. */
struct heap {
	struct heap_node **nodes;
	size_t count, room;
	uint64_t serial;
};

void heap_free(struct heap *heap);
void heap_add(struct heap *heap, struct heap_node *node, uint64_t key);
void heap_remove(struct heap *heap, struct heap_node *node);

/* The one of the lowest key; NULL if there is none. */
static inline struct heap_node *heap_first(const struct heap *heap)
{
	return heap->count > 0 ? heap->nodes[0] : NULL;
}

#endif
