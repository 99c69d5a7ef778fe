/* SPDX-License-Identifier: BSD-2-Clause */
#include "clerk.hpp"

#include <algorithm>
#include <numeric>

namespace weir::serve
{

namespace
{

__extension__ using wide = unsigned __int128;

constexpr weir_dur SECOND = WEIR_S;
constexpr weir_dur MEASURED = SECOND; /* the shortest time from which a rate is taken */
constexpr unsigned SMOOTHED = 4;      /* demand falls by this part of the difference */
constexpr unsigned IDLE_KEPT = 4;     /* this part of what is idle stays free for new buckets */
constexpr unsigned STEADY = 4;   /* assignments stay if they differ by this part of the extra */
constexpr unsigned RENEWALS = 3; /* in the time of an assignment */
constexpr weir_dur GONE_STEP = 100 * WEIR_MS; /* loans of clients that are gone end in steps */
constexpr weir_dur ELAPSED_MAX = 3600 * WEIR_S;

uint64_t bounded(wide units)
{
	return units < WEIR_SHARE_UNITS_MAX ? static_cast<uint64_t>(units) : WEIR_SHARE_UNITS_MAX;
}

/* The time that units count as lent: a client's clock may be slower by a hundredth. */
weir_dur lent_for(unsigned seconds, weir_dur delivery)
{
	return seconds * (WEIR_S + WEIR_S / 100) + delivery;
}

} // namespace

std::vector<uint64_t> divide_fairly(uint64_t units, const std::vector<uint64_t> &wants)
{
	std::vector<size_t> order(wants.size());
	std::vector<uint64_t> parts(wants.size());

	std::iota(order.begin(), order.end(), size_t{0});
	std::stable_sort(order.begin(), order.end(),
			 [&wants](size_t a, size_t b) { return wants[a] < wants[b]; });
	for (size_t i = 0; i < order.size(); i++) {
		/* Rounded down for those that want least, which are not below their part. */
		const uint64_t part = units / (order.size() - i);

		if (wants[order[i]] > part) {
			std::sort(order.begin() + static_cast<std::ptrdiff_t>(i), order.end());
			for (size_t j = i; j < order.size(); j++)
				parts[order[j]] = part + (j - i < units % (order.size() - i));
			return parts;
		}
		parts[order[i]] = wants[order[i]];
		units -= wants[order[i]];
	}
	return parts;
}

uint64_t clerk::open(weir_time now)
{
	lines_[++last_] = account{0, 0, 0, now, now, 0, 0, 0, {}};
	return last_;
}

/*
 * Rates are taken over a second at least, as clients also report at once, and round times down. More
 * requests than the demand count before the second is over. Demand rises at once, and falls by and
 * by.
 */
void clerk::report(uint64_t line, uint64_t requests, weir_dur elapsed, weir_time now)
{
	const auto found = lines_.find(line);

	if (found == lines_.end())
		return;

	account &l = found->second;

	elapsed = std::min(std::max(elapsed, now - l.reported), ELAPSED_MAX);
	l.reported = now;
	if (requests > 0)
		l.asked = now;
	l.counted = bounded(wide{l.counted} + bounded(requests));
	l.elapsed += elapsed;

	const weir_dur time = std::max(l.elapsed, MEASURED);
	const uint64_t rate = bounded((wide{l.counted} * SECOND + time - 1) / time);

	if (rate >= l.demand)
		l.demand = rate;
	else if (l.elapsed >= MEASURED)
		l.demand -= (l.demand - rate + SMOOTHED - 1) / SMOOTHED;
	if (l.elapsed >= MEASURED)
		l.counted = l.elapsed = 0;
}

void clerk::close(uint64_t line)
{
	const auto found = lines_.find(line);
	uint64_t counted = 0;

	if (found == lines_.end())
		return;
	/* Of two loans of one client, it uses the greater: each adds what the later ones lack. */
	const std::vector<loan> &loans = found->second.loans;

	for (auto loan = loans.rbegin(); loan != loans.rend(); ++loan) {
		const weir_time end = (loan->until / GONE_STEP + 1) * GONE_STEP;

		gone_[end] += loan->units - counted;
		counted = loan->units;
	}
	lines_.erase(found);
}

uint64_t clerk::wants() const
{
	wide sum = 0;

	for (const auto &[number, line] : lines_)
		sum += line.demand;
	return bounded(sum);
}

uint64_t clerk::lent(weir_time now)
{
	uint64_t sum = 0;

	forget(now);
	for (const auto &[end, units] : gone_)
		sum += units;
	for (const auto &[number, line] : lines_)
		sum += most(line);
	return sum;
}

/* What the client of a line may be using, now or later. */
uint64_t clerk::most(const account &line)
{
	return line.loans.empty() ? 0 : line.loans.front().units;
}

/* Loans that end no later than another one and are no greater do not matter. */
void clerk::add(std::vector<loan> &loans, const loan &added)
{
	const auto covered = [&added](const loan &l) {
		return l.units <= added.units && l.until <= added.until;
	};
	const auto covers = [&added](const loan &l) {
		return l.units >= added.units && l.until >= added.until;
	};

	if (added.units == 0 || std::any_of(loans.begin(), loans.end(), covers))
		return;
	loans.erase(std::remove_if(loans.begin(), loans.end(), covered), loans.end());
	loans.insert(std::find_if(loans.begin(), loans.end(),
				  [&added](const loan &l) { return l.units < added.units; }),
		     added);
}

void clerk::forget(weir_time now)
{
	gone_.erase(gone_.begin(), gone_.upper_bound(now));
	for (auto &[number, line] : lines_)
		line.loans.erase(std::remove_if(line.loans.begin(), line.loans.end(),
						[now](const loan &l) { return l.until <= now; }),
				 line.loans.end());
}

void clerk::abandon(weir_time now, const std::function<bool(uint64_t line)> &ready,
		    std::vector<assignment> &out)
{
	std::vector<uint64_t> idle;

	for (const auto &[number, line] : lines_)
		if (now - line.asked >= terms_.idle && ready(number))
			idle.push_back(number);
	for (const uint64_t number : idle) {
		out.push_back({number, 0, 0});
		close(number);
	}
}

/*
 * What is wanted; and of what is idle, three quarters, half of that evenly and half by demand. What
 * is kept is for a bucket that comes, before others' assignments have ended.
 */
std::vector<clerk::target> clerk::targets(uint64_t units) const
{
	std::vector<uint64_t> wants;
	std::vector<target> goals;
	wide sum = 0;

	wants.reserve(lines_.size());
	goals.reserve(lines_.size());
	for (const auto &[number, line] : lines_) {
		wants.push_back(line.demand);
		sum += line.demand;
	}

	const uint64_t idle = sum < units ? units - static_cast<uint64_t>(sum) : 0;
	const uint64_t half = (idle - idle / IDLE_KEPT) / 2;
	const std::vector<uint64_t> parts = divide_fairly(units, wants);

	for (const uint64_t part : parts) {
		const uint64_t extra = half / parts.size() +
				       (sum > 0 ? static_cast<uint64_t>(wide{half} * part / sum)
						: half / parts.size());

		goals.push_back({part + extra, extra});
	}
	return goals;
}

/* For how long units can be assigned now: whole seconds, as Envoy reads no others. */
unsigned clerk::seconds(const budget &given, weir_time now) const
{
	unsigned seconds = terms_.ttl;

	while (seconds > 0 &&
	       (given.until < now || given.until - now < lent_for(seconds, terms_.delivery)))
		seconds--;
	return seconds;
}

void clerk::assign(account &line, const assignment &what, weir_time now)
{
	line.assigned = what.units;
	line.sent = now;
	line.until = now + lent_for(what.seconds, terms_.delivery);
	add(line.loans, {what.units, line.until});
}

void clerk::divide(const budget &given, weir_time now,
		   const std::function<bool(uint64_t line)> &ready, std::vector<assignment> &out)
{
	const unsigned longest = seconds(given, now);
	uint64_t all;
	size_t i = 0;

	abandon(now, ready, out);
	all = lent(now);
	const std::vector<target> goals = targets(given.units);

	for (auto &[number, line] : lines_) {
		const uint64_t own = most(line);
		const uint64_t free = given.units > all ? given.units - all : 0;
		const target goal = goals[i++];
		uint64_t units = goal.units;

		if (line.sent != 0 &&
		    std::max(units, line.assigned) - std::min(units, line.assigned) <=
			    goal.extra / STEADY)
			units = line.assigned;
		units = std::min(units, own + free);
		/* Without a lease that lasts, nothing new; what was assigned ends by itself. */
		if (units > 0 && longest == 0) {
			if (own > 0)
				continue;
			units = 0;
		}

		const assignment what{number, units, units > 0 ? longest : terms_.ttl};
		const weir_dur pause = terms_.ttl * WEIR_S / RENEWALS;
		const bool renews = now - line.sent >= pause &&
				    now + lent_for(what.seconds, terms_.delivery) > line.until;

		if ((line.sent != 0 && units == line.assigned && !renews) || !ready(number))
			continue;
		if (units > own)
			all += units - own;
		assign(line, what, now);
		out.push_back(what);
	}
}

} // namespace weir::serve
