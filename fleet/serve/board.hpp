/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * board.hpp - the limits that clients take part in: one share of the fleet for each, and a clerk
 * that divides it.
 *
 * Two threads. The keeper divides shares and sends what is new: ten times a second, and at once
 * after a report. It never waits for the store, so assignments are renewed while that is away. The
 * finder looks limits up, and joins and leaves them, which may wait for the store.
 *
 * Locks. One for everything, which is never held while the store, a stream or a function of the
 * fleet that may wait for the store is called. The fleet's own thread takes it for a moment, when it
 * asks how much is lent.
 */
#ifndef WEIR_FLEET_SERVE_BOARD_HPP
#define WEIR_FLEET_SERVE_BOARD_HPP

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "clerk.hpp"

namespace weir::serve
{

using bucket_id = std::map<std::string, std::string>;

/* What a client is told about one of its buckets. */
struct action {
	std::shared_ptr<const bucket_id> bucket;
	uint64_t units;   /* per second; 0: deny all */
	unsigned seconds; /* from when it is read; 0: abandon the bucket */
};

/* A client's stream, as the board sees it. Both are called without the board's lock. */
class outlet
{
public:
	outlet() = default;
	outlet(const outlet &) = delete;
	outlet &operator=(const outlet &) = delete;
	virtual ~outlet() = default;

	/* Send one message. It is not called again before board::sent(). */
	virtual void send(const std::vector<action> &actions) = 0;

	/* End the stream: at once if it is stuck, or else in order. */
	virtual void end(bool stuck) = 0;
};

/* What a client reports about one of its buckets. */
struct usage {
	bucket_id bucket;
	uint64_t requests;
	weir_dur elapsed; /* since its last report, as it says */
};

struct board_config {
	clerk_terms terms;
	std::string limit_key; /* the value of this key in a bucket id is the limit's name */
	size_t streams;        /* at most */
	size_t buckets;        /* of one stream, at most */
};

/* The numbers of one limit, for metrics. */
struct limit_numbers {
	std::string name;
	size_t buckets;
	uint64_t wants, lent;
};

class board
{
public:
	board(weir_fleet *fleet, board_config config);
	~board(); /* leaves all limits. No stream may be left */
	board(const board &) = delete;
	board &operator=(const board &) = delete;

	/* A stream begins. Returns its number; 0: there are too many, or the board is draining. */
	uint64_t enter(std::shared_ptr<outlet> out);

	/* It has ended. What is lent to its client stays so until it ends. */
	void leave(uint64_t number);

	void report(uint64_t number, const std::vector<usage> &usages);

	/* The message has been sent. */
	void sent(uint64_t number);

	/* End all streams, and take no new ones. */
	void drain();

	/* Wait until nothing is lent, which takes as long as an assignment lasts. */
	void wait_for_loans();

	size_t streams() const;
	std::vector<limit_numbers> numbers();

private:
	struct limit_state;
	struct subscription {
		std::shared_ptr<const bucket_id> bucket;
		limit_state *of;   /* NULL: the limit is being looked up */
		uint64_t line;     /* the clerk's */
		uint64_t requests; /* until there is a line */
	};
	struct client_state {
		std::shared_ptr<outlet> out;
		weir_time sending; /* since when a message is; 0: none is */
		std::map<std::string, subscription> buckets;
		std::map<std::string, std::shared_ptr<const bucket_id>> refused; /* not yet told */
		std::vector<action> actions; /* of the round that is under way */
	};
	struct limit_state {
		board *owner;
		std::string name;
		clerk book;
		weir_share *share;
		uint64_t told;  /* units that it is to have, by the last refresh */
		weir_time used; /* when it last had a client */
		std::map<uint64_t, std::pair<uint64_t, std::string>> lines; /* client, its bucket */
	};
	struct mail {
		uint64_t to;
		std::shared_ptr<outlet> out;
		std::vector<action> actions; /* empty: the stream is stuck */
	};

	static void on_units(void *arg, uint64_t units);
	static uint64_t on_lent(void *arg, uint64_t units);

	void keep();
	void send(mail &parcel, weir_time made);
	void find();
	void kick();
	std::vector<mail> round(weir_time now);
	void divide(limit_state &of, weir_time now);
	std::vector<mail> collect(weir_time now);
	void subscribe(uint64_t number, const std::string &key, const usage &first);
	void stop_waiting(uint64_t number, const std::string &name);
	void open(uint64_t number, const std::string &key, limit_state &of);
	void refuse(client_state &asks, const std::string &key,
		    std::shared_ptr<const bucket_id> id);
	bool look_up(const std::string &name);
	std::unique_ptr<limit_state> join(const std::string &name);
	void found(const std::string &name, std::unique_ptr<limit_state> joined);
	void drop_unused(std::unique_lock<std::mutex> &held);

	weir_fleet *fleet_;
	const board_config config_;

	mutable std::mutex lock_{};
	std::condition_variable keeper_wakes_{}, finder_wakes_{};
	bool kicked_ = false, draining_ = false, ends_ = false;
	uint64_t last_ = 0; /* number given to a client */
	std::map<uint64_t, client_state> clients_{};
	std::map<std::string, std::unique_ptr<limit_state>> limits_{};
	/* Names to be looked up, with the clients and buckets that wait for them. */
	std::map<std::string, std::vector<std::pair<uint64_t, std::string>>> wanted_{};
	std::map<std::string, weir_time> unknown_{}; /* names without a limit, until then */
	std::thread keeper_, finder_;
};

/* The time of the fleet's clock, which goes on while the machine is suspended. */
weir_time clock_now();

} // namespace weir::serve

#endif
