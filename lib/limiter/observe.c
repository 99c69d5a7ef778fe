/* SPDX-License-Identifier: BSD-2-Clause */
/* Snapshots: what a limiter has counted, and its last window. */

#include <weir/observe.h>

#include <dlfcn.h>
#include <string.h>

#include "lib/limiter/limiter.h"

/*
 * A reader that is overtaken by new windows this often takes the words as they are: they are only
 * shown, and control nothing.
 */
#define TRIES 100

/* Bytes of a report beyond whole words: none where numbers are aligned like words. */
#define TAIL (sizeof(struct weir_report) % sizeof(uint64_t))

static uint64_t word_of(const struct weir_report *report, size_t i)
{
	uint64_t word = 0;

	memcpy(&word, (const char *)report + i * sizeof(word),
	       TAIL != 0 && i == REPORT_WORDS - 1 ? TAIL : sizeof(word));
	return word;
}

/* The number of numbers that a limit shows never changes, so the words of the others stay zero. */
void publish(struct published *p, const struct weir_report *report)
{
	const size_t words = REPORT_WORDS - (WEIR_NUMBERS_MAX - report->count);
	/* It is odd already if a process that shared the limiter died in here. */
	const uint32_t version = atomic_load_explicit(&p->version, memory_order_relaxed) | 1;
	const uint64_t windows = atomic_load_explicit(&p->windows, memory_order_relaxed);

	atomic_store_explicit(&p->version, version, memory_order_relaxed);
	for (size_t i = 0; i < words; i++)
		atomic_store_explicit(&p->word[i], word_of(report, i), memory_order_release);
	atomic_store_explicit(&p->version, version + 1, memory_order_release);
	atomic_store_explicit(&p->windows, windows + 1, memory_order_relaxed);
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

/* The greater of a total as computed now and as shown before. */
static uint64_t never_less(_Atomic uint64_t *shown, uint64_t total)
{
	uint64_t before = atomic_load_explicit(shown, memory_order_relaxed);

	while (total > before &&
	       !atomic_compare_exchange_weak_explicit(shown, &before, total, memory_order_relaxed,
						      memory_order_relaxed))
		;
	return total > before ? total : before;
}

/*
 * Successes and admissions are what remains when the other counts are known. The counts are read in
 * the reverse of the order in which a call is counted: it leaves the gate, is counted as dropped,
 * becomes a sample. So a call that moves on meanwhile is missed, and never counted twice, and the
 * result is never more than the truth. Calls in flight are permits less those above one for each
 * call. These are read around the permits, first extra_out and last extra_in, so that the result is
 * not too high.
 */
static void derive_totals(const struct weir_limiter *l, struct weir_snapshot *s)
{
	const struct room *room = l->admission.room;
	uint64_t ended = sampler_samples(&l->sampling), overloaded, calls, extra;

	ended += sampler_counted(&l->sampling) + sampler_total(&l->sampling, TOTAL_UNMEASURED);
	s->dropped = sampler_total(&l->sampling, TOTAL_DROPPED);
	s->timed_out = sampler_total(&l->sampling, TOTAL_TIMED_OUT);
	overloaded = s->dropped + s->timed_out;
	s->succeeded = never_less(&l->shown->succeeded,
				  ended > overloaded ? ended - overloaded : 0);
	s->ignored = sampler_total(&l->sampling, TOTAL_IGNORED);
	s->cancelled = sampler_total(&l->sampling, TOTAL_CANCELLED);
	s->failed = sampler_total(&l->sampling, TOTAL_FAILED);

	extra = atomic_load_explicit(&room->extra_out, memory_order_acquire);
	s->inflight = cache_held(&l->admission.cache).least;
	extra = atomic_load_explicit(&room->extra_in, memory_order_relaxed) - extra;
	calls = extra < s->inflight ? s->inflight - extra : 0;
	s->admitted = never_less(&l->shown->admitted,
				 ended + s->ignored + s->cancelled + s->failed + calls +
					 sampler_total(&l->sampling, TOTAL_REAPED));
}

/*
 * Calls that have ended are read first. If a copy of a token is released twice, more calls end than
 * have begun.
 */
uint32_t limiter_passing(const struct weir_limiter *l)
{
	const uint64_t passed = sampler_total(&l->sampling, TOTAL_PASSED);
	const uint64_t began = sampler_total(&l->sampling, TOTAL_BYPASSED) +
			       sampler_total(&l->sampling, TOTAL_WOULD_REJECT);

	return began > passed ? (uint32_t)(began - passed) : 0;
}

void weir_snapshot_take(const struct weir_limiter *l, struct weir_snapshot *snapshot)
{
	const struct sampling *sampling = &l->sampling;
	struct weir_snapshot s;

	weir_snapshot_init_sized(snapshot, snapshot->size);
	if (l->ops == NULL)
		return;
	s = (struct weir_snapshot){
		.size = snapshot->size,
		.limit = weir_limit(l),
		.burst = atomic_load_explicit(&l->admission.room->burst, memory_order_relaxed),
		.waiting = weir_waiting(l),
		.passing = limiter_passing(l),
		.shadow = limiter_in_shadow(l),
		.rejected = sampler_total(sampling, TOTAL_REJECTED),
		.shed = sampler_total(sampling, TOTAL_SHED),
		.abandoned = sampler_total(sampling, TOTAL_ABANDONED),
		.bypassed = sampler_total(sampling, TOTAL_BYPASSED),
		.would_reject = sampler_total(sampling, TOTAL_WOULD_REJECT),
		.detached = sampler_total(sampling, TOTAL_DETACHED),
		.double_released = sampler_total(sampling, TOTAL_DOUBLE_RELEASED),
		.windows = atomic_load_explicit(&l->published->windows, memory_order_relaxed),
	};

	derive_totals(l, &s);
	read_report(l->published, &s.last);
	s.sample_every = thinning_each(sampling) / (double)EACH_ONE;
	s.last.names = l->ops->numbers;
	/* No more numbers than names: an observer of a shared limiter may not know the names. */
	if (s.last.count > limiter_numbers(l))
		s.last.count = limiter_numbers(l);
	memcpy(snapshot, &s, snapshot->size < sizeof(s) ? snapshot->size : sizeof(s));
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
