/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clerk RUNS: the clerk against a naive twin, which keeps every assignment that was ever sent and
 * adds up what clients may be using from these, with random clients, budgets and leases.
 */
#include "clerk.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "../stress/check.h"

namespace
{

using namespace weir::serve;

constexpr clerk_terms TERMS = {6, WEIR_S / 2, 60 * WEIR_S};
constexpr weir_dur STEP = 100 * WEIR_MS; /* ends of clients that are gone are rounded up to it */

/* One assignment, as the client may use it at the latest. */
struct sent {
	uint64_t line, units;
	weir_time until;
};

struct twin {
	std::vector<sent> all;
	std::set<uint64_t> open, closed;

	uint64_t most_of(uint64_t line, weir_time now) const
	{
		uint64_t most = 0;

		for (const sent &s : all) {
			const weir_time until = closed.count(line) != 0
							? (s.until / STEP + 1) * STEP
							: s.until;

			if (s.line == line && until > now)
				most = std::max(most, s.units);
		}
		return most;
	}

	uint64_t lent(weir_time now) const
	{
		uint64_t sum = 0;

		for (const uint64_t line : open)
			sum += most_of(line, now);
		for (const uint64_t line : closed)
			sum += most_of(line, now);
		return sum;
	}

	/* What has ended before it is not rounded up. */
	void close(uint64_t line, weir_time now)
	{
		all.erase(std::remove_if(all.begin(), all.end(),
					 [line, now](const sent &s) {
						 return s.line == line && s.until <= now;
					 }),
			  all.end());
		open.erase(line);
		closed.insert(line);
	}

	void forget(weir_time now)
	{
		all.erase(std::remove_if(all.begin(), all.end(),
					 [now](const sent &s) { return s.until + STEP < now; }),
			  all.end());
	}
};

/* Unit by unit, to each in turn that has less than it wants. */
std::vector<uint64_t> divide_slowly(uint64_t units, const std::vector<uint64_t> &wants)
{
	std::vector<uint64_t> parts(wants.size());

	for (bool given = true; given;) {
		given = false;
		for (size_t i = 0; i < wants.size() && units > 0; i++)
			if (parts[i] < wants[i]) {
				parts[i]++;
				units--;
				given = true;
			}
	}
	return parts;
}

void division(uint64_t *seed)
{
	for (unsigned run = 0; run < 2000; run++) {
		std::vector<uint64_t> wants(draw(seed) % 9);
		const uint64_t units = draw(seed) % 300;

		for (uint64_t &w : wants)
			w = draw(seed) % 4 == 0 ? 0 : draw(seed) % 120;
		CHECK(divide_fairly(units, wants) == divide_slowly(units, wants));
	}
	CHECK((divide_fairly(WEIR_SHARE_UNITS_MAX,
			     {WEIR_SHARE_UNITS_MAX, 7, WEIR_SHARE_UNITS_MAX}) ==
	       std::vector<uint64_t>{WEIR_SHARE_UNITS_MAX / 2 - 3, 7,
				     WEIR_SHARE_UNITS_MAX / 2 - 4}));
}

/* A round: everything that must hold of what is sent. Returns how many messages there were. */
size_t round_of(clerk &clerk, twin &twin, const budget &budget, weir_time now,
		const std::set<uint64_t> &busy)
{
	const uint64_t before = twin.lent(now);
	std::vector<assignment> out;
	std::set<uint64_t> lines;

	CHECK(clerk.lent(now) == before);
	clerk.divide(
		budget, now, [&busy](uint64_t line) { return busy.count(line) == 0; }, out);
	for (const assignment &a : out) {
		CHECK(twin.open.count(a.line) == 1 && busy.count(a.line) == 0);
		CHECK(lines.insert(a.line).second && a.seconds <= TERMS.ttl);
		if (a.seconds == 0) {
			twin.close(a.line, now);
			continue;
		}

		const weir_time until = now + a.seconds * (WEIR_S + WEIR_S / 100) + TERMS.delivery;

		CHECK(a.units == 0 || until <= budget.until);
		CHECK(a.units <= budget.units);
		twin.all.push_back({a.line, a.units, until});
	}
	CHECK(twin.lent(now) <= std::max(budget.units, before));
	CHECK(clerk.lent(now) == twin.lent(now) && clerk.lines() == twin.open.size());
	return out.size();
}

uint64_t pick(const std::set<uint64_t> &from, uint64_t *seed)
{
	return *std::next(from.begin(), static_cast<std::ptrdiff_t>(draw(seed) % from.size()));
}

/* What has been assigned last to each line that is open. */
std::vector<uint64_t> assigned(const twin &twin)
{
	std::vector<uint64_t> units;

	for (const uint64_t line : twin.open) {
		const auto last = std::find_if(twin.all.rbegin(), twin.all.rend(),
					       [line](const sent &s) { return s.line == line; });

		CHECK(last != twin.all.rend());
		units.push_back(last->units);
	}
	return units;
}

/* Everything stays as it is for a while: then all have their due. */
void settle(clerk &clerk, twin &twin, weir_time now, uint64_t *seed)
{
	const uint64_t units = draw(seed) % 400;
	std::vector<uint64_t> wants, due;
	uint64_t sum = 0, all = 0;

	for (unsigned second = 0; second < 40; second++) {
		wants.clear();
		sum = 0;
		for (const uint64_t line : twin.open) {
			wants.push_back(line % 7 * 20 + 1);
			sum += wants.back();
			clerk.report(line, wants.back(), WEIR_S, now);
		}
		for (unsigned i = 0; i < 4; i++, now += WEIR_S / 4)
			round_of(clerk, twin, {units, now + 60 * WEIR_S}, now, {});
	}
	CHECK(clerk.wants() == sum);
	due = assigned(twin);
	for (const uint64_t u : due)
		all += u;
	CHECK(all <= units);
	if (sum >= units)
		CHECK(due == divide_slowly(units, wants));
	for (size_t i = 0; i < due.size() && sum < units; i++)
		CHECK(due[i] >= wants[i]);
	if (sum < units && !due.empty())
		CHECK(all + 1 >= sum + (units - sum) / 4);
}

void random_run(uint64_t *seed)
{
	clerk clerk(TERMS);
	twin twin;
	weir_time now = 1000 * WEIR_S;
	budget budget = {100, now + 10 * WEIR_S};
	std::set<uint64_t> busy;

	for (unsigned i = 0; i < 400; i++) {
		const uint64_t what = draw(seed) % 16;

		if (what < 2 && twin.open.size() < 12)
			twin.open.insert(clerk.open(now));
		else if (what < 3 && !twin.open.empty()) {
			const uint64_t line = pick(twin.open, seed);

			clerk.close(line);
			twin.close(line, now);
		} else if (what < 8 && !twin.open.empty())
			clerk.report(pick(twin.open, seed), draw(seed) % 200,
				     draw(seed) % 3 * WEIR_S, now);
		else if (what < 9)
			budget.units = draw(seed) % 300;
		else if (what < 11)
			budget.until = now + draw(seed) % (15 * WEIR_S);
		else if (what < 12 && !twin.open.empty())
			busy.insert(pick(twin.open, seed));
		else if (what < 13)
			busy.clear();
		else
			now += draw(seed) % (draw(seed) % 8 == 0 ? 5 * WEIR_S : WEIR_S / 4);
		round_of(clerk, twin, budget, now, busy);
		twin.forget(now);
	}
	settle(clerk, twin, now, seed);
}

/* The demand of one client over some reports, a second apart. */
void demand()
{
	clerk clerk(TERMS);
	weir_time now = WEIR_S;
	const uint64_t line = clerk.open(now);

	/* The first report says no time, and its requests came in a second at most. */
	clerk.report(line, 5, 0, now);
	CHECK(clerk.wants() == 5);
	clerk.report(line, 3, 0, now + WEIR_MS);
	CHECK(clerk.wants() == 8);
	/* The time that passed here counts if the client has rounded it down, or lies. */
	now += 4 * WEIR_S;
	clerk.report(line, 400, WEIR_S, now);
	CHECK(clerk.wants() == 102);
	/* A client that was held up reports late, but the time is right. */
	clerk.report(line, 200, 2 * WEIR_S, now + 1);
	CHECK(clerk.wants() == 101);
	for (unsigned i = 0; i < 40; i++)
		clerk.report(line, 0, WEIR_S, now += WEIR_S);
	CHECK(clerk.wants() == 0);
	clerk.report(line, UINT64_MAX, UINT64_MAX, now += WEIR_S);
	clerk.report(line, UINT64_MAX, 0, now);
	CHECK(clerk.wants() <= WEIR_SHARE_UNITS_MAX);
	clerk.report(line + 1, 1, 0, now);
	clerk.close(line + 1);
	CHECK(clerk.lines() == 1);
}

/* A bucket without requests is abandoned, and its units are free when the last assignment ends. */
void idle()
{
	clerk clerk(TERMS);
	twin twin;
	weir_time now = WEIR_S;

	twin.open.insert(clerk.open(now));
	clerk.report(1, 10, WEIR_S, now);
	for (; now < TERMS.idle + WEIR_S; now += WEIR_S) {
		clerk.report(1, 0, WEIR_S, now);
		round_of(clerk, twin, {100, now + 20 * WEIR_S}, now, {});
		CHECK(twin.open.size() == 1);
	}
	CHECK(round_of(clerk, twin, {100, now + 20 * WEIR_S}, now, {1}) == 0);
	CHECK(round_of(clerk, twin, {100, now + 20 * WEIR_S}, now, {}) == 1);
	CHECK(twin.open.empty() && clerk.lent(now) > 0);
	now += 7 * WEIR_S;
	CHECK(clerk.lent(now) == 0);
}

/* An assignment that is to be shorter counts until the longer one has ended. */
void shrinking()
{
	clerk clerk(TERMS);
	twin twin;
	weir_time now = WEIR_S;
	const weir_time far = 1000 * WEIR_S;

	twin.open.insert(clerk.open(now));
	clerk.report(1, 100, WEIR_S, now);
	round_of(clerk, twin, {100, far}, now, {});
	CHECK(twin.most_of(1, now) == 100);
	twin.open.insert(clerk.open(now));
	clerk.report(2, 100, WEIR_S, now);
	/* The first one is told at once, the second one waits. */
	CHECK(round_of(clerk, twin, {100, far}, now, {}) == 2);
	CHECK(twin.all[1].units == 50 && twin.all[2].units == 0);
	now += 6 * WEIR_S;
	round_of(clerk, twin, {100, far}, now, {});
	CHECK(twin.most_of(1, now) == 100 && twin.most_of(2, now) == 0);
	now += WEIR_S;
	round_of(clerk, twin, {100, far}, now, {});
	CHECK(twin.most_of(1, now) == 50 && twin.most_of(2, now) == 50);
	/* Without a lease that lasts for a second, nothing is renewed, and nothing is denied. */
	now += 5 * WEIR_S;
	CHECK(round_of(clerk, twin, {100, now + WEIR_S}, now, {}) == 0);
	CHECK(round_of(clerk, twin, {100, now + 2 * WEIR_S}, now, {}) == 1);
	CHECK(round_of(clerk, twin, {0, now + WEIR_S}, now, {}) == 2);
	CHECK(twin.all.back().units == 0);
}

} // namespace

int main(int argc, char **argv)
{
	const unsigned runs = argc == 2 ? static_cast<unsigned>(atoi(argv[1])) : 100;
	uint64_t seed = 88172645463325252;

	division(&seed);
	demand();
	idle();
	shrinking();
	for (unsigned i = 0; i < runs; i++)
		random_run(&seed);
	printf("the clerk agrees with its twin in %u runs\n", runs);
	return 0;
}
