/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guard calls in C++: two classes of traffic, a queue, and outcomes by result and by exception.
 *
 *	example-guard [LIMIT]
 *
 * makes some calls from a few threads to a simulated store, with that limit ("vegas:initial=4"),
 * and prints the results.
 */
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weir/weir.hpp>

using namespace std::chrono_literals;

/* Every tenth key is missing, and the store fails now and then. */
static std::string look_up(unsigned key)
{
	static std::atomic<unsigned> lookups{0};

	std::this_thread::sleep_for(200us);
	if (++lookups % 50 == 0)
		throw std::runtime_error("the store broke");
	return key % 10 == 0 ? "" : "value";
}

/* With a permit object: it is released on every path, also by an exception. */
static bool serve(weir::limiter_ref limiter, const weir_call &call, unsigned key)
{
	weir::permit permit = limiter.acquire(20ms, call);

	if (!permit)
		return false; /* too busy; permit.error() has the reason */
	if (key == 0)
		return true; /* no work was done, so this is not a sample */
	look_up(key);
	permit.success();
	return true;
}

/* The same in one expression, with an outcome by the result. */
static bool serve_at_once(weir::limiter_ref limiter, const weir_call &call, unsigned key)
{
	const auto value = limiter.try_acquire(call).run([key] { return look_up(key); },
							 [](const std::string &found) {
								 return found.empty()
										? WEIR_IGNORE
										: WEIR_SUCCESS;
							 });

	return value.has_value();
}

static void make_calls(weir::limiter_ref limiter, const weir_call &call, bool patient)
{
	for (unsigned key = 0; key < 100; key++) {
		try {
			if (patient)
				serve(limiter, call, key);
			else
				serve_at_once(limiter, call, key);
		} catch (const std::runtime_error &) {
			continue; /* released as failed */
		}
	}
}

int main(int argc, char **argv)
{
	weir::config config;
	weir::status how = config.set_limit(argc > 1 ? argv[1] : "vegas:initial=4");

	if (how) {
		config.queue = 16;
		config.window_min = weir::dur(10ms);
		config.set_partitions({{"live", 0.7}, {"batch"}});
		how = config.check();
	}

	const weir::limiter limiter(config);

	if (!how || !limiter) {
		std::fprintf(stderr, "example-guard: %s\n", how.why);
		return EXIT_FAILURE;
	}

	weir_call live = {}, batch = {};
	std::vector<std::thread> threads;

	live.partition = limiter.partition_find("live");
	batch.partition = limiter.partition_find("batch");
	for (unsigned i = 0; i < 4; i++) {
		threads.emplace_back([&] { make_calls(limiter, live, true); });
		threads.emplace_back([&] { make_calls(limiter, batch, false); });
	}
	for (std::thread &thread : threads)
		thread.join();

	const weir_snapshot seen = limiter.snapshot();

	std::printf("succeeded %ju, ignored %ju, failed %ju, rejected %ju, abandoned %ju\n",
		    std::uintmax_t{seen.succeeded}, std::uintmax_t{seen.ignored},
		    std::uintmax_t{seen.failed}, std::uintmax_t{seen.rejected},
		    std::uintmax_t{seen.abandoned});
	std::printf("limit %u, in flight %u\n", seen.limit, seen.inflight);
	return seen.inflight == 0 && seen.admitted + seen.rejected + seen.abandoned == 800
		       ? EXIT_SUCCESS
		       : EXIT_FAILURE;
}
