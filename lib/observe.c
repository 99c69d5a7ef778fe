/*
 * Snapshots: what a limiter has counted, and its last window.
 */

#include <weir/observe.h>

#include <dlfcn.h>
#include <string.h>

#include "lib/internal.h"

/* A reader that is overtaken this often by new windows takes the words as they are: it shows
 * numbers, and steers nothing. */
#define TRIES 100

void publish(struct published *p, const struct weir_report *report)
{
	uint32_t version = atomic_load_explicit(&p->version, memory_order_relaxed);
	struct weir_report plain = *report;
	uint64_t word[REPORT_WORDS] = {0};

	plain.names = NULL; /* a pointer of this process */
	memcpy(word, &plain, sizeof(plain));
	atomic_store_explicit(&p->version, version + 1, memory_order_relaxed);
	for (size_t i = 0; i < REPORT_WORDS; i++)
		atomic_store_explicit(&p->word[i], word[i], memory_order_release);
	atomic_store_explicit(&p->version, version + 2, memory_order_release);
	atomic_fetch_add_explicit(&p->windows, 1, memory_order_relaxed);
}

static void read_report(const struct published *p, struct weir_report *report)
{
	uint64_t word[REPORT_WORDS];

	for (int i = 0; i < TRIES; i++) {
		uint32_t version = atomic_load_explicit(&p->version, memory_order_acquire);

		for (size_t k = 0; k < REPORT_WORDS; k++)
			word[k] = atomic_load_explicit(&p->word[k], memory_order_acquire);
		if ((version & 1) == 0 &&
		    atomic_load_explicit(&p->version, memory_order_relaxed) == version)
			break;
	}
	memcpy(report, word, sizeof(*report));
}

void weir_snapshot_init_sized(struct weir_snapshot *snapshot, size_t size)
{
	memset(snapshot, 0, size);
	snapshot->size = size;
}

void weir_snapshot_take(const struct weir_limiter *l, struct weir_snapshot *snapshot)
{
	const struct sampling *s = &l->sampling;
	uint64_t word = gate_read(l->gate);
	struct weir_snapshot now = {
		.size = snapshot->size,
		.limit = gate_limit(word),
		.inflight = gate_inflight(word),
		.waiting = gate_waiters(word),
		.admitted = sampler_total(s, TOTAL_ADMITTED),
		.rejected = sampler_total(s, TOTAL_REJECTED),
		.timed_out = sampler_total(s, TOTAL_TIMED_OUT),
		.succeeded = sampler_total(s, TOTAL_SUCCEEDED),
		.ignored = sampler_total(s, TOTAL_IGNORED),
		.dropped = sampler_total(s, TOTAL_DROPPED),
		.double_released = sampler_total(s, TOTAL_DOUBLE_RELEASED),
		.windows = atomic_load_explicit(&l->published->windows, memory_order_relaxed),
	};

	read_report(l->published, &now.last);
	now.last.names = l->ops->numbers;
	memcpy(snapshot, &now, snapshot->size < sizeof(now) ? snapshot->size : sizeof(now));
}

size_t weir_outstanding_visit(const struct weir_limiter *l,
			      bool (*visit)(void *arg, const struct weir_outstanding *token),
			      void *arg)
{
	size_t visited = 0;

	for (uint32_t i = 0; i < l->tracking.count; i++) {
		struct weir_outstanding token = {.place = NULL};
		Dl_info info;

		if (!track_read(&l->tracking, i, &token.start, &token.place))
			continue;
		if (dladdr(token.place, &info) != 0) {
			token.symbol = info.dli_sname;
			token.module = info.dli_fname;
			token.offset = (uintptr_t)token.place - (uintptr_t)info.dli_fbase;
		}
		visited++;
		if (!visit(arg, &token))
			break;
	}
	return visited;
}
