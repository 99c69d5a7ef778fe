/* SPDX-License-Identifier: BSD-2-Clause */
#include "heap.h"

#include "alloc_or_abort.h"

#include <stdbool.h>
#include <stdlib.h>

static bool before(const struct heap_node *a, const struct heap_node *b)
{
	return a->key != b->key ? a->key < b->key : a->serial < b->serial;
}

static void put(struct heap *heap, size_t place, struct heap_node *node)
{
	heap->nodes[place - 1] = node;
	node->place = place;
}

static void sift_up(struct heap *heap, struct heap_node *node, size_t place)
{
	while (place > 1 && before(node, heap->nodes[place / 2 - 1])) {
		put(heap, place, heap->nodes[place / 2 - 1]);
		place /= 2;
	}
	put(heap, place, node);
}

static void sift_down(struct heap *heap, struct heap_node *node, size_t place)
{
	for (;;) {
		size_t child = 2 * place;

		if (child > heap->count)
			break;
		if (child < heap->count && before(heap->nodes[child], heap->nodes[child - 1]))
			child++;
		if (before(node, heap->nodes[child - 1]))
			break;
		put(heap, place, heap->nodes[child - 1]);
		place = child;
	}
	put(heap, place, node);
}

void heap_free(struct heap *heap)
{
	free(heap->nodes);
	*heap = (struct heap){.nodes = NULL};
}

void heap_add(struct heap *heap, struct heap_node *node, uint64_t key)
{
	if (heap->count == heap->room) {
		heap->room = heap->room == 0 ? 64 : 2 * heap->room;
		heap->nodes = realloc_or_abort(heap->nodes,
					       heap->room * sizeof(struct heap_node *));
	}
	node->key = key;
	node->serial = heap->serial++;
	heap->count++;
	sift_up(heap, node, heap->count);
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
	struct heap_node *last = heap->nodes[heap->count - 1];
	size_t place = node->place;

	node->place = 0;
	heap->count--;
	if (last == node)
		return;
	if (place > 1 && before(last, heap->nodes[place / 2 - 1]))
		sift_up(heap, last, place);
	else
		sift_down(heap, last, place);
}
