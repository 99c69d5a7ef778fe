/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * late: the daemon is stopped while it sends the messages of a round, and goes on much later. What a
 * client is assigned then must not last longer than it counts as lent. The clock is the test's.
 */
#include "board.hpp"

#include <atomic>
#include <cstdio>

#include "../stress/check.h"

namespace
{

using namespace weir::serve;

constexpr unsigned TTL = 2;
constexpr weir_dur DELIVERY = 3 * WEIR_S;
constexpr weir_dur STOPPED = TTL * WEIR_S + DELIVERY - WEIR_S / 2;
constexpr unsigned MESSAGES = 3;
const char *const LIMIT = "alpha";

std::atomic<weir_time> now{WEIR_S};

uint64_t lent(board &by)
{
	uint64_t sum = 0;

	for (const limit_numbers &limit : by.numbers())
		sum += limit.lent;
	return sum;
}

/* A client that uses what it is assigned until that ends, counted from when it is sent. */
class client : public outlet
{
public:
	explicit client(board &by) : board_(by)
	{
	}

	void enter(const std::shared_ptr<outlet> &self)
	{
		number_ = board_.enter(self);
		CHECK(number_ != 0);
	}

	void want(uint64_t requests)
	{
		board_.report(number_, {{{{"name", LIMIT}}, requests, WEIR_S}});
	}

	void send(const std::vector<action> &actions) override
	{
		for (const action &said : actions)
			if (said.units > 0)
				use(said);
		board_.sent(number_);
	}

	void end(bool stuck) override
	{
		CHECK(!stuck);
		board_.leave(number_);
	}

	unsigned messages() const
	{
		return messages_;
	}

protected:
	virtual void use(const action &said)
	{
		now += said.seconds * WEIR_S - WEIR_S / 10;
		CHECK(lent(board_) >= said.units);
		messages_++;
	}

	std::atomic<unsigned> messages_{0};

private:
	board &board_;
	uint64_t number_ = 0;
};

/* While its first message is being sent, the process is stopped: the others' come after that. */
class stopping_client final : public client
{
public:
	using client::client;

private:
	void use(const action &) override
	{
		if (messages_++ == 0)
			now += STOPPED;
	}
};

} // namespace

weir_time weir::serve::clock_now()
{
	return now;
}

int main()
{
	const weir_clock clock = {[](const weir_clock *) { return clock_now(); }};
	weir_store_config store_config;
	weir_fleet_config config;
	weir_fleet_limit limit;
	weir_store *store;
	weir_fleet *fleet;

	weir_store_config_init(&store_config);
	store_config.clock = &clock;
	CHECK(weir_store_open(&store_config, &store, nullptr, 0) == 0);
	weir_fleet_limit_init(&limit);
	limit.capacity = 500;
	CHECK(weir_fleet_configure(store, LIMIT, &limit, nullptr, 0) == 0);
	weir_fleet_config_init(&config);
	config.store = store;
	config.manual = 1;
	config.clock = &clock;
	CHECK(weir_fleet_open(&config, &fleet, nullptr, 0) == 0);
	{
		board by(fleet, {{TTL, DELIVERY, 600 * WEIR_S}, "name", 10, 10});
		const auto first = std::make_shared<stopping_client>(by);
		const auto second = std::make_shared<client>(by);

		first->enter(first);
		second->enter(second);
		/* There are no units before the first step, so one round assigns them to both. */
		first->want(100);
		second->want(100);
		while (second->messages() < MESSAGES) {
			(void)weir_fleet_step(fleet);
			now += 5 * WEIR_MS;
			std::this_thread::sleep_for(std::chrono::milliseconds(5));
		}
		CHECK(first->messages() > 0);
		by.drain();
	}
	weir_fleet_close(fleet);
	weir_store_close(store);
	printf("nothing was assigned by a time that was over\n");
	return 0;
}
