/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clerk.hpp - divides a process's share of one limit among clients, by assignments that end.
 *
 * A client says what it had to do, and is assigned units per second for some seconds. It cannot be
 * told that it has fewer: a message may be on its way for a while, and nothing says when it has been
 * read. So units count as lent until the assignment must have ended for the client, whatever was
 * assigned to it since, and whether the client is still there or not. No client is assigned more
 * than the units that are neither lent to another one nor above the budget.
 *
 * No clock, no threads, no gRPC: time is an argument.
 */
#ifndef WEIR_FLEET_SERVE_CLERK_HPP
#define WEIR_FLEET_SERVE_CLERK_HPP

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include <weir/fleet.h>

namespace weir::serve
{

struct clerk_terms {
	unsigned ttl;      /* of an assignment, in seconds, at most */
	weir_dur delivery; /* that a message may take until it has been read */
	weir_dur idle;     /* a bucket without a request for that long is abandoned */
};

/* What all clients together may use, and until when that is certain. */
struct budget {
	uint64_t units;
	weir_time until;
};

/* A message to the client of a line. */
struct assignment {
	uint64_t line;
	uint64_t units; /* per second; 0: deny all */
	unsigned
		seconds; /* from when it is read; 0: the line is closed, and the bucket abandoned */
};

/* Units that are lent to a client until then, counted here. */
struct loan {
	uint64_t units;
	weir_time until;
};

class clerk
{
public:
	explicit clerk(const clerk_terms &terms) : terms_(terms)
	{
	}

	/* Open a line: a client that has asked for units of one bucket. Returns its number. */
	uint64_t open(weir_time now);

	/*
	 * Requests that came to the client, admitted or not, in the time that it says. That time is
	 * not trusted below what passed here since its last report.
	 */
	void report(uint64_t line, uint64_t requests, weir_dur elapsed, weir_time now);

	/* The client is gone. What is lent to it stays so until it ends. */
	void close(uint64_t line);

	/*
	 * Divide a budget, and append what is to be sent now, which counts as sent. A line to
	 * which nothing can be sent, as ready says, keeps what it has.
	 */
	void divide(const budget &given, weir_time now,
		    const std::function<bool(uint64_t line)> &ready, std::vector<assignment> &out);

	/* Units that all clients together want; at most WEIR_SHARE_UNITS_MAX. */
	uint64_t wants() const;

	/* Units that clients may be using, now or later, without another assignment. */
	uint64_t lent(weir_time now);

	size_t lines() const
	{
		return lines_.size();
	}

private:
	struct account {
		uint64_t demand;    /* units per second */
		uint64_t counted;   /* requests of the measurement under way */
		weir_dur elapsed;   /* its time so far */
		weir_time reported; /* last */
		weir_time asked;    /* when a request was last reported */

		uint64_t assigned;       /* as sent last */
		weir_time sent;          /* 0: nothing was sent yet */
		weir_time until;         /* of what was sent last */
		std::vector<loan> loans; /* units fall from one to the next, and ends rise */
	};
	struct target {
		uint64_t units, extra; /* extra: beyond the demand, part of units */
	};

	void forget(weir_time now);
	void abandon(weir_time now, const std::function<bool(uint64_t line)> &ready,
		     std::vector<assignment> &out);
	std::vector<target> targets(uint64_t units) const;
	unsigned seconds(const budget &given, weir_time now) const;
	void assign(account &line, const assignment &what, weir_time now);
	static uint64_t most(const account &line);
	static void add(std::vector<loan> &loans, const loan &added);

	clerk_terms terms_;
	uint64_t last_ = 0; /* number given to a line */
	std::map<uint64_t, account> lines_{};
	std::map<weir_time, uint64_t> gone_{}; /* lent to clients that are gone, by its end */
};

/*
 * Divide units by what is wanted: max-min fair, in whole units, remainders to the first. Where less
 * is wanted than there is, each gets what it wants.
 */
std::vector<uint64_t> divide_fairly(uint64_t units, const std::vector<uint64_t> &wants);

} // namespace weir::serve

#endif
