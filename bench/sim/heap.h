/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap.h - a binary heap: a set ordered by a 64-bit key.
 *
 * An element has a struct heap_node as its first member. Each node stores its index, so removing
 * one from the middle needs no search. Nodes with equal keys leave in the order they were added.
 */
#ifndef HEAP_H
#define HEAP_H

#include <stddef.h>
#include <stdint.h>

struct heap_node {
	uint64_t key;
	uint64_t serial;
	size_t place; /* index, from 1; 0: not in a heap */
};

/* Empty when all zeroes. */
struct heap {
	struct heap_node **nodes;
	size_t count, room;
	uint64_t serial;
};

void heap_free(struct heap *heap);
void heap_add(struct heap *heap, struct heap_node *node, uint64_t key);
void heap_remove(struct heap *heap, struct heap_node *node);

/* The node with the lowest key; NULL if the heap is empty. */
static inline struct heap_node *heap_first(const struct heap *heap)
{
	return heap->count > 0 ? heap->nodes[0] : NULL;
}

#endif
