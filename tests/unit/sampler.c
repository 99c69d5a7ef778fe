/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Edge cases of the sampler: what is a sample, when a window closes, what does not fit into a word.
 */

#include <math.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "lib/sample/sampler.h"

#define MS WEIR_MS

/* A sampler of one stripe, laid out as in a limiter. */
static struct sampling make(struct sampler_config config)
{
	struct sampling s = {
		.config = config,
		.closing = malloc(sizeof(*s.closing)),
		.sampler = aligned_alloc(LINE, sizeof(struct sampler)),
		.stripes = aligned_alloc(LINE, sizeof(struct stripe)),
		.lanes = aligned_alloc(LINE, sizeof(struct lane)),
		.pool = malloc(pool_size(1)),
	};

	s.config.stripes = 1;
	s.config.rtt_smoothing = config.rtt_smoothing > 0 ? config.rtt_smoothing : 1;
	atomic_init(s.closing, 0);
	sampler_init(&s);
	return s;
}

static void end(const struct sampling *s)
{
	free(s->closing);
	free(s->sampler);
	free(s->stripes);
	free(s->lanes);
	free(s->pool);
}

static const struct sampler_config ten_ms = {
	.window_min = 10 * MS,
	.window_max = 10 * MS,
	.window_samples = 1,
	.quantile = 0.5,
};

Test(sampler, a_window_closes_after_its_deadline_not_at_it)
{
	struct sampling s = make(ten_ms);
	struct weir_window w;

	sampler_record(&s, s.stripes, 500, 1, SERVED);
	cr_assert(sampler_close(&s, 100 * MS, &w));
	cr_assert(w.start == 100 * MS, "the start of the first window is not known");
	sampler_open(&s, 100 * MS);
	sampler_record(&s, s.stripes, 500, 1, SERVED);
	cr_assert(!sampler_close(&s, 110 * MS, &w));
	cr_assert(sampler_close(&s, 110 * MS + 1, &w));
	cr_assert_eq(w.count, 1);
	cr_assert(w.start == 100 * MS && w.end == 110 * MS + 1);
	end(&s);
}

Test(sampler, an_owned_window_is_not_closed_again)
{
	struct sampling s = make(ten_ms);
	struct weir_window w;

	sampler_record(&s, s.stripes, 500, 1, SERVED);
	cr_assert(sampler_close(&s, 100 * MS, &w));
	sampler_record(&s, s.stripes, 500, 1, SERVED);
	cr_assert(!sampler_close(&s, 900 * MS, &w));
	sampler_open(&s, 100 * MS);
	cr_assert(sampler_close(&s, 900 * MS, &w));
	end(&s);
}

Test(sampler, a_latency_at_the_threshold_counts)
{
	struct sampler_config config = ten_ms;
	struct sampling s;

	config.rtt_threshold = 1000;
	s = make(config);
	cr_assert(!sampler_record(&s, s.stripes, 999, 1, SERVED));
	cr_assert(sampler_record(&s, s.stripes, 1000, 1, SERVED));
	cr_assert(sampler_record(&s, s.stripes, 999, 1, DROPPED), "a fast drop is a drop");
	cr_assert(!sampler_record(&s, s.stripes, 0, 1, SERVED));
	end(&s);
}

Test(sampler, a_drop_without_latency_makes_a_window_without_latency)
{
	struct sampling s = make(ten_ms);
	struct weir_window w;

	cr_assert(sampler_record(&s, s.stripes, 0, 7, DROPPED));
	cr_assert(!sampler_close(&s, 100 * MS, &w), "the first sample only opens a window");
	cr_assert(sampler_record(&s, s.stripes, 0, 7, DROPPED));
	cr_assert(sampler_close(&s, 111 * MS, &w));
	cr_assert(w.count == 0 && w.dropped == 2 && w.inflight_max == 7);
	cr_assert(w.rtt == 0 && w.rtt_min == 0 && w.rtt_mean == 0);
	end(&s);
}

Test(sampler, more_samples_than_a_word_holds_are_all_counted)
{
	struct sampling s = make(ten_ms);
	struct weir_window w;
	const uint32_t many = 5000000;

	for (uint32_t i = 0; i < many; i++)
		sampler_record(&s, s.stripes, 3000000, 1, SERVED);
	cr_assert(sampler_close(&s, 100 * MS, &w));
	cr_assert_eq(w.count, many);
	cr_assert_eq(w.rtt_mean, 3000000);
	sampler_open(&s, 100 * MS);
	sampler_record(&s, s.stripes, 3000000, 1, SERVED);
	cr_assert(sampler_close(&s, 200 * MS, &w));
	cr_assert(w.count == 1 && w.rtt_mean == 3000000);
	end(&s);
}

Test(sampler, latencies_of_hours_are_summed_in_full)
{
	struct sampling s = make(ten_ms);
	struct weir_window w;

	for (int i = 0; i < 1000; i++)
		sampler_record(&s, s.stripes, 36000 * WEIR_S, 1, SERVED);
	sampler_record(&s, s.stripes, WEIR_S, 1, SERVED);
	cr_assert(sampler_close(&s, 100 * MS, &w));
	cr_assert_eq(w.count, 1001);
	cr_assert_eq(w.rtt_mean, (double)((36000000 * WEIR_S + WEIR_S) / 1001));
	cr_assert(w.rtt_min == 1e9 && w.rtt_max == 36000e9);
	end(&s);
}

Test(sampler, a_quantile_of_very_many_is_within_a_bucket)
{
	struct sampler_config config = ten_ms;
	struct weir_window w;
	struct sampling s;

	config.rtt = WEIR_RTT_QUANTILE;
	config.quantile = 0.9;
	s = make(config);
	for (uint32_t i = 1; i <= 3000000; i++)
		sampler_record(&s, s.stripes, i, 1, SERVED);
	cr_assert(sampler_close(&s, 100 * MS, &w));
	cr_assert(w.rtt > 2.7e6 * 15 / 16 && w.rtt < 2.7e6 * 17 / 16, "%f", w.rtt);
	end(&s);
}

Test(sampler, delays_of_the_queue_are_counted_with_their_lowest)
{
	struct sampling s = make(ten_ms);
	struct weir_window w;

	sampler_queued(&s, s.stripes, 300);
	sampler_queued(&s, s.stripes, 200);
	sampler_queued(&s, s.stripes, 400);
	sampler_record(&s, s.stripes, 500, 1, SERVED);
	cr_assert(sampler_close(&s, 100 * MS, &w));
	cr_assert(w.queued == 3 && w.queue_min == 200);
	sampler_queued(&s, s.stripes, 900); /* counts in the next window */
	sampler_open(&s, 100 * MS);
	sampler_record(&s, s.stripes, 500, 1, SERVED);
	cr_assert(sampler_close(&s, 200 * MS, &w));
	cr_assert(w.queued == 1 && w.queue_min == 900);
	sampler_open(&s, 200 * MS);
	sampler_record(&s, s.stripes, 500, 1, SERVED);
	cr_assert(sampler_close(&s, 300 * MS, &w));
	cr_assert(w.queued == 0 && w.queue_min == 0);
	end(&s);
}

Test(sampler, a_delay_of_zero_is_counted)
{
	struct sampling s = make(ten_ms);
	struct weir_window w;

	sampler_queued(&s, s.stripes, 300);
	sampler_queued(&s, s.stripes, 0);
	sampler_queued(&s, s.stripes, 300);
	sampler_record(&s, s.stripes, 500, 1, SERVED);
	cr_assert(sampler_close(&s, 100 * MS, &w));
	cr_assert(w.queued == 3 && w.queue_min == 0);
	end(&s);
}

Test(sampler, delays_beyond_the_word_stay_in_it)
{
	struct sampling s = make(ten_ms);
	const uint32_t most = (UINT32_C(1) << 24) - 1;
	struct weir_window w;

	sampler_queued(&s, s.stripes, WEIR_FOREVER);
	sampler_record(&s, s.stripes, 500, 1, SERVED);
	cr_assert(sampler_close(&s, 100 * MS, &w));
	cr_assert(w.queued == 1 && w.queue_min == 0x1p40 - 1);
	sampler_open(&s, 100 * MS);
	for (uint32_t i = 0; i <= most; i++)
		sampler_queued(&s, s.stripes, 7);
	sampler_record(&s, s.stripes, 500, 1, SERVED);
	cr_assert(sampler_close(&s, 200 * MS, &w));
	cr_assert(w.queued == most && w.queue_min == 7);
	end(&s);
}

Test(sampler, delays_alone_close_no_window_and_go_with_a_discarded_one)
{
	struct sampler_config config = ten_ms;
	struct weir_window w;
	struct sampling s;

	config.discard = true;
	config.window_samples = 2;
	s = make(config);
	sampler_queued(&s, s.stripes, 300);
	sampler_record(&s, s.stripes, 500, 1, SERVED);
	cr_assert(!sampler_close(&s, 100 * MS, &w), "discarded");
	sampler_queued(&s, s.stripes, 400);
	sampler_record(&s, s.stripes, 500, 1, SERVED);
	sampler_record(&s, s.stripes, 500, 1, SERVED);
	cr_assert(sampler_close(&s, 111 * MS, &w));
	cr_assert(w.queued == 1 && w.queue_min == 400);
	end(&s);
}

/* Otherwise the window would not close before the time that the clock showed. */
Test(sampler, a_clock_that_goes_back_restarts_a_window_that_is_too_small)
{
	struct sampler_config config = ten_ms;
	struct weir_window w;
	struct sampling s;

	config.window_samples = 2;
	config.window_max = 40 * MS;
	s = make(config);
	sampler_open(&s, 100 * MS);
	atomic_store(&s.sampler->due, 0);
	s.sampler->length = 10 * MS;
	sampler_record(&s, s.stripes, 500, 1, SERVED);
	cr_assert(!sampler_close(&s, 50 * MS, &w));
	cr_assert(!sampler_close(&s, 60 * MS, &w));
	sampler_record(&s, s.stripes, 500, 1, SERVED);
	cr_assert(sampler_close(&s, 60 * MS + 1, &w));
	cr_assert(w.start == 50 * MS && w.count == 2);
	end(&s);
}

Test(sampler, a_bare_window_has_calls_that_are_no_samples)
{
	const struct sample sample = {.rtt = 500, .inflight = 1, .kind = SERVED};
	struct sampler_config config = ten_ms;
	struct weir_window w;
	struct sampling s;

	config.each_sample = true;
	s = make(config);
	cr_assert(!sampler_close_bare(&s, 100 * MS, &w), "another thread took all");
	sampler_note(&s, s.stripes, 300);
	stripe_count(s.stripes, TOTAL_CANCELLED);
	cr_assert(!sampler_close(&s, 100 * MS, &w), "there is no sample");
	cr_assert(sampler_close_bare(&s, 101 * MS, &w));
	cr_assert(w.count == 0 && w.others == 1 && w.others_time == 300 && w.cancelled == 1);
	cr_assert(!sampler_close_bare(&s, 102 * MS, &w), "it is owned");
	sampler_open(&s, 101 * MS);
	sampler_note(&s, s.stripes, 300);
	cr_assert(sampler_close_with(&s, s.stripes, 103 * MS, &sample, &w));
	cr_assert(w.count == 1 && w.others == 1 && w.cancelled == 0);
	end(&s);
}

Test(sampler, a_window_does_not_end_before_it_starts)
{
	const struct sample sample = {.rtt = 500, .inflight = 1, .kind = SERVED};
	struct sampler_config config = ten_ms;
	struct weir_window w;
	struct sampling s;

	config.each_sample = true;
	s = make(config);
	s.sampler->length = 10 * MS;
	sampler_open(&s, 100 * MS);
	cr_assert(sampler_close_with(&s, s.stripes, 101 * MS, &sample, &w));
	cr_assert(w.start == 100 * MS && w.end == 101 * MS);
	s.sampler->length = 10 * MS;
	sampler_open(&s, 101 * MS);
	cr_assert(sampler_close_with(&s, s.stripes, 50 * MS, &sample, &w));
	cr_assert(w.start == 50 * MS && w.end == 50 * MS);
	end(&s);
}

/* In shared memory, another process may have written it. */
Test(sampler, an_impossible_smoothed_latency_starts_afresh)
{
	static const double impossible[] = {-1, 0, NAN, 1e300, INFINITY};
	struct sampler_config config = ten_ms;
	struct weir_window w;

	config.rtt_smoothing = 0.5;
	for (int i = 0; i < 5; i++) {
		struct sampling s = make(config);

		s.sampler->rtt_smoothed = impossible[i];
		sampler_record(&s, s.stripes, 500, 1, SERVED);
		cr_assert(sampler_close(&s, 100 * MS, &w));
		cr_assert_eq(w.rtt, 500);
		end(&s);
	}
}

Test(sampler, counts_beyond_32_bits_are_shown_as_the_highest)
{
	struct sampling s = make(ten_ms);
	struct weir_window w;

	for (int i = 0; i < 2; i++)
		atomic_fetch_add(&s.stripes->total[TOTAL_CANCELLED], UINT32_MAX);
	stripe_count(s.stripes, TOTAL_FAILED);
	sampler_record(&s, s.stripes, 500, 1, SERVED);
	cr_assert(sampler_close(&s, 100 * MS, &w));
	cr_assert(w.cancelled == UINT32_MAX && w.failed == 1);
	end(&s);
}

Test(sampler, the_clock_may_begin_anywhere_and_wrap)
{
	struct sampling s = make(ten_ms);
	weir_time now = UINT64_MAX - 200 * MS;
	struct weir_window w;
	unsigned closed = 0;

	for (int i = 0; i < 500; i++, now += MS) {
		sampler_record(&s, s.stripes, 500, 1, SERVED);
		if (sampler_close(&s, now, &w)) {
			closed++;
			cr_assert(closed == 1 || w.count == 11);
			sampler_open(&s, now);
		}
	}
	cr_assert(closed >= 45 && closed <= 47, "%u", closed);
	end(&s);
}
