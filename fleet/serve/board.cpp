/* SPDX-License-Identifier: BSD-2-Clause */
#include "board.hpp"

#include <algorithm>
#include <cerrno>

namespace weir::serve
{

namespace
{

using std::chrono::milliseconds;

constexpr milliseconds ROUND{100};               /* between two rounds of the keeper */
constexpr milliseconds PAUSE{10};                /* at least, however many reports come */
constexpr milliseconds RETRY{500};               /* of a name, while the store is away */
constexpr weir_dur UNKNOWN_FOR = 5 * WEIR_S;     /* until a name is looked up again */
constexpr size_t UNKNOWN_MAX = 4096;             /* names that are remembered as unknown */
constexpr size_t PAIRS_MAX = 16, TEXT_MAX = 256; /* of a bucket id; of a key or value */

/* The text is the same for the same id, and only then. */
std::string key_of(const bucket_id &id)
{
	std::string key;

	for (const auto &[name, value] : id)
		for (const std::string &text : {name, value}) {
			key += std::to_string(text.size());
			key += ':';
			key += text;
		}
	return key;
}

bool is_usable(const bucket_id &id)
{
	return !id.empty() && id.size() <= PAIRS_MAX &&
	       std::all_of(id.begin(), id.end(), [](const auto &pair) {
		       return !pair.first.empty() && pair.first.size() <= TEXT_MAX &&
			      !pair.second.empty() && pair.second.size() <= TEXT_MAX;
	       });
}

/* The limit that a bucket is of, or "" if none can be. */
std::string limit_of(const bucket_id &id, const std::string &key)
{
	const auto found = id.find(key);
	struct weir_fleet_limit any;

	weir_fleet_limit_init(&any);
	any.capacity = 1;
	if (found == id.end() || found->second.find('\0') != std::string::npos ||
	    weir_fleet_limit_check(found->second.c_str(), &any, nullptr, 0) != 0)
		return {};
	return found->second;
}

} // namespace

board::board(weir_fleet *fleet, board_config config) : fleet_(fleet), config_(std::move(config))
{
	keeper_ = std::thread(&board::keep, this);
	finder_ = std::thread(&board::find, this);
}

board::~board()
{
	{
		const std::lock_guard<std::mutex> held(lock_);

		ends_ = true;
	}
	kick();
	finder_wakes_.notify_all();
	keeper_.join();
	finder_.join();
	for (const auto &[name, limit] : limits_)
		weir_share_leave(limit->share);
}

void board::kick()
{
	const std::lock_guard<std::mutex> held(lock_);

	kicked_ = true;
	keeper_wakes_.notify_one();
}

/* What clients do. */

uint64_t board::enter(std::shared_ptr<outlet> out)
{
	const std::lock_guard<std::mutex> held(lock_);

	if (draining_ || clients_.size() >= config_.streams)
		return 0;
	clients_[++last_].out = std::move(out);
	return last_;
}

/* A client does not wait for that limit any more. */
void board::stop_waiting(uint64_t number, const std::string &name)
{
	const auto found = wanted_.find(name);

	if (found == wanted_.end())
		return;
	auto &all = found->second;
	all.erase(std::remove_if(all.begin(), all.end(),
				 [number](const auto &waits) { return waits.first == number; }),
		  all.end());
}

void board::leave(uint64_t number)
{
	const std::lock_guard<std::mutex> held(lock_);
	const auto found = clients_.find(number);

	if (found == clients_.end())
		return;
	for (const auto &[key, bucket] : found->second.buckets) {
		if (bucket.of == nullptr) {
			stop_waiting(number, limit_of(*bucket.bucket, config_.limit_key));
			continue;
		}
		bucket.of->book.close(bucket.line);
		bucket.of->lines.erase(bucket.line);
	}
	clients_.erase(found);
}

void board::refuse(client_state &asks, const std::string &key, std::shared_ptr<const bucket_id> id)
{
	if (asks.refused.size() < config_.buckets)
		asks.refused.emplace(key, std::move(id));
}

void board::open(uint64_t number, const std::string &key, limit_state &of)
{
	subscription &bucket = clients_[number].buckets[key];
	const weir_time now = clock_now();

	bucket.of = &of;
	bucket.line = of.book.open(now);
	of.book.report(bucket.line, bucket.requests, 0, now);
	of.lines[bucket.line] = {number, key};
}

void board::subscribe(uint64_t number, const std::string &key, const usage &first)
{
	client_state &asks = clients_[number];
	auto id = std::make_shared<const bucket_id>(first.bucket);
	const std::string name = limit_of(first.bucket, config_.limit_key);
	const auto known = limits_.find(name);

	if (name.empty() || unknown_.count(name) != 0 || !is_usable(first.bucket) ||
	    asks.buckets.size() >= config_.buckets || wanted_.size() >= UNKNOWN_MAX) {
		refuse(asks, key, std::move(id));
		return;
	}
	asks.buckets[key] = {std::move(id), nullptr, 0, first.requests};
	if (known != limits_.end()) {
		open(number, key, *known->second);
		return;
	}
	wanted_[name].emplace_back(number, key);
	finder_wakes_.notify_one();
}

void board::report(uint64_t number, const std::vector<usage> &usages)
{
	const std::lock_guard<std::mutex> held(lock_);
	const auto found = clients_.find(number);
	const weir_time now = clock_now();

	if (found == clients_.end())
		return;
	for (const usage &u : usages) {
		const std::string key = key_of(u.bucket);
		const auto bucket = found->second.buckets.find(key);

		if (bucket == found->second.buckets.end())
			subscribe(number, key, u);
		else if (bucket->second.of != nullptr)
			bucket->second.of->book.report(bucket->second.line, u.requests, u.elapsed,
						       now);
		else if (bucket->second.requests < u.requests)
			bucket->second.requests = u.requests;
	}
	kicked_ = true;
	keeper_wakes_.notify_one();
}

void board::sent(uint64_t number)
{
	const std::lock_guard<std::mutex> held(lock_);
	const auto found = clients_.find(number);

	if (found == clients_.end())
		return;
	found->second.sending = 0;
	kicked_ = true;
	keeper_wakes_.notify_one();
}

void board::drain()
{
	std::vector<std::shared_ptr<outlet>> outs;
	{
		const std::lock_guard<std::mutex> held(lock_);

		draining_ = true;
		for (const auto &[number, client] : clients_)
			outs.push_back(client.out);
	}
	for (const auto &out : outs)
		out->end(false);
}

void board::wait_for_loans()
{
	for (uint64_t lent = 1; lent > 0;) {
		lent = 0;
		for (const limit_numbers &limit : numbers())
			lent += limit.lent;
		if (lent > 0)
			std::this_thread::sleep_for(ROUND);
	}
}

size_t board::streams() const
{
	const std::lock_guard<std::mutex> held(lock_);

	return clients_.size();
}

std::vector<limit_numbers> board::numbers()
{
	const std::lock_guard<std::mutex> held(lock_);
	const weir_time now = clock_now();
	std::vector<limit_numbers> all;

	for (const auto &[name, limit] : limits_)
		all.push_back(
			{name, limit->book.lines(), limit->book.wants(), limit->book.lent(now)});
	return all;
}

/* What the fleet says, in its own threads. */

void board::on_units(void *arg, uint64_t units)
{
	(void)units;
	static_cast<limit_state *>(arg)->owner->kick();
}

/* From here on, no more than that many units are lent, or what is lent already. */
uint64_t board::on_lent(void *arg, uint64_t units)
{
	auto *of = static_cast<limit_state *>(arg);
	const std::lock_guard<std::mutex> held(of->owner->lock_);

	of->told = units;
	return of->book.lent(clock_now());
}

/* The keeper. */

static budget budget_of(weir_share *share, uint64_t told)
{
	struct weir_share_info info;

	weir_share_info_init(&info);
	weir_share_info_take(share, &info);
	/* Without a lease, there is what is reserved, which does not end. */
	if (info.state == WEIR_SHARE_LOCAL || info.state == WEIR_SHARE_LOST)
		return {std::min(info.units, told), WEIR_FOREVER};
	return {std::min(info.units, told), info.deadline};
}

/* Divide one share, and leave the messages with the clients. */
void board::divide(limit_state &of, weir_time now)
{
	const auto ready = [this, &of](uint64_t line) {
		return clients_[of.lines[line].first].sending == 0;
	};
	std::vector<assignment> messages;

	of.book.divide(budget_of(of.share, of.told), now, ready, messages);
	(void)weir_share_demand_set(of.share, of.book.wants());
	if (!of.lines.empty())
		of.used = now;
	for (const assignment &message : messages) {
		const auto line = of.lines.find(message.line);
		client_state &to = clients_[line->second.first];
		const auto bucket = to.buckets.find(line->second.second);

		to.actions.push_back({bucket->second.bucket, message.units, message.seconds});
		if (message.seconds > 0)
			continue;
		to.buckets.erase(bucket);
		of.lines.erase(line);
	}
}

/* One message for each client that something is to be said to. */
std::vector<board::mail> board::collect(weir_time now)
{
	std::vector<mail> parcels;

	for (auto &[number, client] : clients_) {
		if (client.sending != 0) {
			if (now - client.sending > config_.terms.delivery)
				parcels.push_back({number, client.out, {}});
			continue;
		}
		for (const auto &[key, id] : client.refused)
			client.actions.push_back({id, 0, 0});
		client.refused.clear();
		if (client.actions.empty())
			continue;
		client.sending = now;
		parcels.push_back({number, client.out, std::move(client.actions)});
		client.actions.clear();
	}
	return parcels;
}

std::vector<board::mail> board::round(weir_time now)
{
	if (!draining_)
		for (const auto &[name, limit] : limits_)
			divide(*limit, now);
	return collect(now);
}

/* A process that was stopped in between assigns nothing by a time that is over. */
void board::send(mail &parcel, weir_time made)
{
	if (parcel.actions.empty()) {
		parcel.out->end(true);
		return;
	}
	if (clock_now() - made > config_.terms.delivery / 2)
		parcel.actions.erase(
			std::remove_if(parcel.actions.begin(), parcel.actions.end(),
				       [](const action &said) { return said.units > 0; }),
			parcel.actions.end());
	if (parcel.actions.empty())
		sent(parcel.to);
	else
		parcel.out->send(parcel.actions);
}

void board::keep()
{
	std::unique_lock<std::mutex> held(lock_);

	while (!ends_) {
		const weir_time now = clock_now();
		std::vector<mail> parcels = round(now);

		held.unlock();
		for (mail &p : parcels)
			send(p, now);
		std::this_thread::sleep_for(PAUSE);
		held.lock();
		keeper_wakes_.wait_for(held, ROUND, [this] { return kicked_ || ends_; });
		kicked_ = false;
	}
}

/* The finder. */

/* A limit that is not in the store is not made: its name comes from a client. */
std::unique_ptr<board::limit_state> board::join(const std::string &name)
{
	auto made = std::make_unique<limit_state>(limit_state{
		this, name, clerk(config_.terms), nullptr, UINT64_MAX, clock_now(), {}});
	struct weir_share_config config;

	weir_share_config_init(&config);
	config.name = made->name.c_str();
	config.headroom = WEIR_HEADROOM_ALWAYS;
	config.apply = on_units;
	config.lent = on_lent;
	config.arg = made.get();
	if (weir_share_join(fleet_, &config, &made->share, nullptr, 0) != 0)
		return nullptr;
	return made;
}

/* Returns false if the store did not answer. */
bool board::look_up(const std::string &name)
{
	struct weir_fleet_limit there;
	int error;

	weir_fleet_limit_init(&there);
	error = weir_fleet_inspect(weir_fleet_store(fleet_), name.c_str(), &there, nullptr,
				   nullptr);
	if (error == -EIO)
		return false;

	std::unique_ptr<limit_state> joined = error == 0 ? join(name) : nullptr;
	const std::lock_guard<std::mutex> held(lock_);

	found(name, std::move(joined));
	kicked_ = true;
	keeper_wakes_.notify_one();
	return true;
}

/* Open the lines of all that waited for it, or refuse them. */
void board::found(const std::string &name, std::unique_ptr<limit_state> joined)
{
	const auto waiting = wanted_.extract(name);

	if (joined == nullptr) {
		if (unknown_.size() >= UNKNOWN_MAX)
			unknown_.clear();
		unknown_[name] = clock_now() + UNKNOWN_FOR;
	} else {
		limits_[name] = std::move(joined);
	}
	for (const auto &[number, key] : waiting.mapped()) {
		const auto client = clients_.find(number);

		if (client == clients_.end())
			continue;
		if (limits_.count(name) != 0) {
			open(number, key, *limits_[name]);
			continue;
		}
		refuse(client->second, key, client->second.buckets[key].bucket);
		client->second.buckets.erase(key);
	}
}

/* Leave limits that have had no client for a while. */
void board::drop_unused(std::unique_lock<std::mutex> &held)
{
	const weir_time now = clock_now();
	std::vector<std::unique_ptr<limit_state>> unused;

	for (auto at = limits_.begin(); at != limits_.end();) {
		limit_state &of = *at->second;

		if (of.lines.empty() && now - of.used > config_.terms.idle &&
		    of.book.lent(now) == 0) {
			unused.push_back(std::move(at->second));
			at = limits_.erase(at);
		} else {
			++at;
		}
	}
	for (auto at = unknown_.begin(); at != unknown_.end();)
		at = at->second < now ? unknown_.erase(at) : std::next(at);
	held.unlock();
	for (const auto &limit : unused)
		weir_share_leave(limit->share);
	held.lock();
}

void board::find()
{
	std::unique_lock<std::mutex> held(lock_);
	bool answered = true;

	while (!ends_) {
		drop_unused(held);
		if (wanted_.empty() || !answered)
			finder_wakes_.wait_for(held, RETRY, [this, answered] {
				return ends_ || (answered && !wanted_.empty());
			});
		answered = true;
		if (ends_ || wanted_.empty())
			continue;

		const std::string name = wanted_.begin()->first;

		held.unlock();
		answered = look_up(name);
		held.lock();
	}
}

} // namespace weir::serve
