/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ending: a stream is finished once, and with nothing under way, in every order in which its write,
 * its cancellation and what ends it can come. Writes fail or not, and begin again.
 */
#include "ending.hpp"

#include <cstdio>

#include "../stress/check.h"

namespace
{

constexpr unsigned STEPS = 9;

unsigned long orders;

/* A stream, and what is under way as its surroundings see it. */
struct world {
	weir::serve::ending ending{};
	bool writing = false, cutting = false, over = false, finished = false;

	void after(bool finishes)
	{
		if (finishes) {
			CHECK(over && !finished && !writing && !cutting);
			finished = true;
		}
		CHECK(!over || writing || cutting || finished);
	}

	void write()
	{
		const bool begins = ending.write();

		CHECK(begins == (!over && !writing));
		writing = writing || begins;
	}

	void written(bool ok)
	{
		writing = false;
		over = over || !ok;
		after(ending.written(ok));
	}

	void cut()
	{
		const bool begins = ending.cut();

		CHECK(begins == (writing && !cutting));
		cutting = cutting || begins;
	}

	void was_cut()
	{
		cutting = false;
		after(ending.was_cut());
	}

	void end()
	{
		over = true;
		after(ending.end());
		CHECK(ending.is_over());
	}
};

void explore(const world &before, unsigned steps)
{
	const auto then = [&before, steps](auto step) {
		world next = before;

		step(next);
		explore(next, steps - 1);
	};

	if (steps == 0) {
		orders++;
		return;
	}
	then([](world &w) { w.write(); });
	then([](world &w) { w.cut(); });
	then([](world &w) { w.end(); });
	if (before.writing) {
		then([](world &w) { w.written(true); });
		then([](world &w) { w.written(false); });
	}
	if (before.cutting)
		then([](world &w) { w.was_cut(); });
}

} // namespace

int main()
{
	explore({}, STEPS);
	printf("finished once in each of %lu orders\n", orders);
	return 0;
}
