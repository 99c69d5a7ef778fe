/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/weir.hpp - the library from C++17: owning limiters, and permits that release themselves.
 *
 *	weir::config config;
 *	config.queue = 100;
 *	weir::limiter limiter(config);
 *	...
 *	weir::permit permit = limiter.acquire(50ms);
 *	if (!permit)
 *		return reject(request);
 *	serve(request);
 *	permit.success();
 *
 * A layer over the C headers, which are the reference: calls, outcomes and numbers are the C types
 * under their C names, and get() gives access to everything else. Everything is inline. An
 * admission and a release do what the two C functions do, plus a test of one pointer.
 *
 * Errors. Nothing here throws, and all of it compiles with -fno-exceptions -fno-rtti. A permit that
 * was refused and a limiter that could not be created are empty: they are tested like a pointer,
 * and hold the reason. Only functions that set or copy a configuration's strings allocate; when out
 * of memory they do what std::string does.
 *
 * Thread safety. A limiter may be used by any number of threads, as in C. While it is created,
 * moved or destroyed, no other thread may use it. Permits and configurations are plain objects:
 * each is used by one thread at a time, and may be handed to another.
 */
#ifndef WEIR_WEIR_HPP
#define WEIR_WEIR_HPP

#include <weir/weir.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <ratio>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace weir
{

/* Result of creating something. Converts to true on success. */
struct [[nodiscard]] status {
	int error = 0;      /* 0, or a negative errno */
	char why[256] = ""; /* one sentence; empty on success */

	/* Whether it succeeded. */
	explicit operator bool() const noexcept
	{
		return error == 0;
	}
};

/*
 * A duration in any unit, for weir_config and elsewhere. Less than a nanosecond is 0, which a
 * configuration takes as the default; 292 years and more are WEIR_FOREVER.
 */
template <class Rep, class Period>
constexpr weir_dur dur(std::chrono::duration<Rep, Period> duration) noexcept
{
	using ns = std::chrono::nanoseconds;
	/* Wide enough for the longest duration in the given unit, whatever Rep is. */
	using wide = std::chrono::duration<std::common_type_t<Rep, std::intmax_t>, Period>;

	if (!(duration > duration.zero()))
		return 0;
	if constexpr (std::chrono::treat_as_floating_point_v<Rep> ||
		      std::ratio_greater_equal_v<Period, std::nano>)
		if (duration >= std::chrono::duration_cast<wide>(ns::max()))
			return WEIR_FOREVER;
	return static_cast<weir_dur>(std::chrono::duration_cast<ns>(duration).count());
}

/* struct weir_partition, but it owns its name. Fields, ranges and defaults are the same. */
struct partition {
	std::string name{};
	double share = 0;
	double cap = 0;
	std::uint32_t max = 0;
	std::chrono::nanoseconds reject_delay{};
};

/*
 * struct weir_config, initialised: its fields are set as in C, and it can be passed wherever a
 * pointer to one is expected. It also owns what limit and partitions point to, if they were set
 * through the functions here. Copies share that, so each stays valid by itself. There is no move,
 * which would leave dangling pointers.
 */
class config : public weir_config
{
public:
	/* All defaults. */
	config() noexcept : weir_config()
	{
		weir_config_init_sized(this, sizeof(weir_config));
	}

	config(const config &) = default;
	config &operator=(const config &) = default;
	~config() = default;

	/*
	 * Set limit and limit_config to a built-in limit by text, as for weir_limit_from_text():
	 * "vegas:alpha=log10:2". On -EINVAL both are unchanged.
	 */
	status set_limit(const std::string &text)
	{
		const weir_limit_ops *ops = nullptr;
		auto own = std::make_shared<limit_bytes>();
		status how;

		how.error = weir_limit_from_text(text.c_str(), &ops, own->at, how.why,
						 sizeof(how.why));
		if (!how)
			return how;
		limit = ops;
		limit_config = own->at;
		limit_config_size = ops->config_size;
		own_limit_ = std::move(own);
		return how;
	}

	/*
	 * Set partitions and partition_count to shares of the limit. check() says whether they are
	 * valid.
	 */
	void set_partitions(std::vector<partition> list)
	{
		auto own = std::make_shared<partition_list>();

		own->named = std::move(list);
		own->plain.reserve(own->named.size());
		for (const partition &p : own->named) {
			weir_partition plain = {};

			plain.name = p.name.c_str();
			plain.share = p.share;
			plain.cap = p.cap;
			plain.max = p.max;
			plain.reject_delay = dur(p.reject_delay);
			own->plain.push_back(plain);
		}
		partitions = own->plain.data();
		partition_count = static_cast<std::uint32_t>(own->plain.size());
		own_partitions_ = std::move(own);
	}

	/* As weir_config_check(): whether a limiter can be made of this. */
	status check() const noexcept
	{
		status how;

		how.error = weir_config_check(this, how.why, sizeof(how.why));
		return how;
	}

private:
	struct limit_bytes {
		alignas(std::max_align_t) unsigned char at[WEIR_LIMIT_CONFIG_MAX] = {};
	};
	struct partition_list {
		std::vector<partition> named{};
		std::vector<weir_partition> plain{}; /* with the names in named */
	};

	std::shared_ptr<const limit_bytes> own_limit_{};
	std::shared_ptr<const partition_list> own_partitions_{};
};

/*
 * The constructor has done this. weir_config_init() would pass the size of this class for
 * weir_config's.
 */
void weir_config_init_sized(config *config, std::size_t size) = delete;

/*
 * An observer made of a callable, which is called with a const weir_report & according to
 * weir/observe.h. For weir_config.observer. It must outlive the limiter, and cannot be moved. An
 * exception from it would have to pass through C, so it ends the program.
 *
 *	weir::observer log([](const weir_report &report) { ... });
 *	config.observer = &log;
 */
template <class F> class observer : public weir_observer
{
public:
	/* The callable is moved into it. */
	explicit observer(F callable) : weir_observer(), callable_(std::move(callable))
	{
		window = [](void *self, const weir_report *report) noexcept {
			static_cast<observer *>(self)->callable_(*report);
		};
		arg = this;
	}

	observer(const observer &) = delete;
	observer &operator=(const observer &) = delete;
	~observer() = default;

private:
	F callable_;
};

/*
 * Proof of admission, which releases itself. It holds a token, or nothing: after a refusal, a
 * release, or a move. Releasing a permit that holds nothing does nothing, so each token is released
 * exactly once. A permit must not outlive its limiter.
 *
 * A permit that is destroyed without an outcome is released as WEIR_FAILED if an exception is
 * passing through the thread, else as WEIR_IGNORE. Neither is a sample. A forgotten outcome must
 * not count as success: a function that returns early often had nothing to do, and such latencies
 * would teach the limit that its backend is fast when idle, and hence slow now. So the worst that a
 * forgotten outcome causes is a limit that does not change, and weir_snapshot.ignored shows it.
 */
class [[nodiscard]] permit
{
public:
	/* Holds nothing. */
	permit() noexcept = default;

	/*
	 * Take over a token acquired by C functions, in weir_poll() for example. token is emptied.
	 */
	static permit adopt(weir_limiter *limiter, weir_token &token) noexcept
	{
		permit got(limiter, 0);

		got.token_ = std::exchange(token, weir_token{});
		return got;
	}

	/* Takes over what the other one held. */
	permit(permit &&other) noexcept
		: limiter_(other.limiter_), token_(std::exchange(other.token_, weir_token{})),
		  error_(other.error_)
	{
	}

	/* The token that it held before is released without an outcome. */
	permit &operator=(permit &&other) noexcept
	{
		permit taken(std::move(other));

		std::swap(limiter_, taken.limiter_);
		std::swap(token_, taken.token_);
		std::swap(error_, taken.error_);
		return *this;
	}

	permit(const permit &) = delete;
	permit &operator=(const permit &) = delete;

	~permit()
	{
		if (*this)
			release(std::uncaught_exceptions() > 0 ? WEIR_FAILED : WEIR_IGNORE);
	}

	/* Whether it holds a token. */
	explicit operator bool() const noexcept
	{
		return token_.state != 0;
	}

	/*
	 * Why the call was refused: the error of the C function, mostly -EAGAIN. 0 if it was not.
	 */
	int error() const noexcept
	{
		return error_;
	}

	/* The token: time of admission, cost, partition. All zero if the permit holds nothing. */
	const weir_token &token() const noexcept
	{
		return token_;
	}

	/* Release with an outcome: weir_release(). */
	void release(weir_outcome outcome) noexcept
	{
		if (*this)
			weir_release(limiter_, &token_, outcome);
	}

	void success() noexcept
	{
		release(WEIR_SUCCESS);
	}

	void ignore() noexcept
	{
		release(WEIR_IGNORE);
	}

	void dropped() noexcept
	{
		release(WEIR_DROPPED);
	}

	void timed_out() noexcept
	{
		release(WEIR_TIMED_OUT);
	}

	void cancelled() noexcept
	{
		release(WEIR_CANCELLED);
	}

	void failed() noexcept
	{
		release(WEIR_FAILED);
	}

	/*
	 * weir_detach(): the call has become a long-lived one. It still holds its permits and still
	 * needs an outcome, but its latency will not be a sample. False if the permit holds
	 * nothing.
	 */
	bool detach() noexcept
	{
		return *this && weir_detach(limiter_, &token_) == 0;
	}

	/* weir_queued(): the time that the call waited in the backend's own queue. */
	void queued(weir_dur delay) noexcept
	{
		if (*this)
			weir_queued(limiter_, &token_, delay);
	}

	/* Give the token to C code, which must release it. This permit then holds nothing. */
	[[nodiscard]] weir_token take() noexcept
	{
		return std::exchange(token_, weir_token{});
	}

	/*
	 * Do the work of an admitted call and release it. Returns the result of work(), or nothing
	 * if the call was refused, and work() was not called. In one expression with the admission:
	 *
	 *	limiter.try_acquire().run(work, classify)
	 *
	 * classify(result) returns the outcome; without it work() returns a weir_outcome itself.
	 * Exceptions of either go on to the caller, and the call counts as failed.
	 */
	template <class Work, class Classify>
	[[nodiscard]] auto run(Work &&work, Classify &&classify)
		-> std::optional<std::decay_t<std::invoke_result_t<Work>>>
	{
		using result = std::decay_t<std::invoke_result_t<Work>>;
		static_assert(std::is_same_v<std::invoke_result_t<Classify, const result &>,
					     weir_outcome>,
			      "classify() returns a weir_outcome");
		if (!*this)
			return std::nullopt;
		permit mine(std::move(*this)); /* ends here, even on an exception */
		std::optional<result> got(std::in_place, std::forward<Work>(work)());
		mine.release(std::forward<Classify>(classify)(std::as_const(*got)));
		return got;
	}

	template <class Work> [[nodiscard]] std::optional<weir_outcome> run(Work &&work)
	{
		static_assert(std::is_same_v<std::invoke_result_t<Work>, weir_outcome>,
			      "work() returns a weir_outcome, or there is a classify()");
		return run(std::forward<Work>(work),
			   [](weir_outcome outcome) noexcept { return outcome; });
	}

private:
	friend class limiter_base;

	permit(weir_limiter *from, int error) noexcept : limiter_(from), error_(error)
	{
	}

	weir_limiter *limiter_ = nullptr;
	weir_token token_ = {};
	int error_ = 0;
};

/*
 * Common part of a limiter and a view of one. Either may be empty: it then refuses every call with
 * -EINVAL, and all its numbers are 0. const applies to the handle, as with a smart pointer.
 *
 * Acquiring is always inlined, even without optimisation, so that weir_outstanding.place is where
 * the program acquired.
 */
class limiter_base
{
public:
	/* Whether there is a limiter. */
	explicit operator bool() const noexcept
	{
		return limiter_ != nullptr;
	}

	/* For the C functions; NULL if empty. Ownership does not change. */
	weir_limiter *get() const noexcept
	{
		return limiter_;
	}

	/* As weir_try_acquire() and weir_try_acquire_for(): admit now or refuse. */
	[[gnu::always_inline]] permit try_acquire() const noexcept
	{
		permit got(limiter_, -EINVAL);

		if (limiter_ != nullptr)
			got.error_ = weir_try_acquire(limiter_, &got.token_);
		return got;
	}

	[[gnu::always_inline]] permit try_acquire(const weir_call &call) const noexcept
	{
		permit got(limiter_, -EINVAL);

		if (limiter_ != nullptr)
			got.error_ = weir_try_acquire_for(limiter_, &call, &got.token_);
		return got;
	}

	/*
	 * As weir_acquire() and weir_acquire_for(): admit, waiting until deadline if necessary. On
	 * Linux the steady clock is CLOCK_MONOTONIC, the limiter's own, in libstdc++ and in libc++.
	 * A deadline on another clock does not compile, since that clock may be set.
	 * time_point::max() means no deadline.
	 */
	[[gnu::always_inline]] permit acquire(std::chrono::steady_clock::time_point deadline,
					      const weir_call &call = {}) const noexcept
	{
		return wait_until(dur(deadline.time_since_epoch()), call);
	}

	/* The same with a timeout: 0 or less does not wait at all. */
	template <class Rep, class Period>
	[[gnu::always_inline]] permit acquire(std::chrono::duration<Rep, Period> timeout,
					      const weir_call &call = {}) const noexcept
	{
		const weir_time now = weir_now();
		const weir_dur wait = dur(timeout);

		return wait_until(wait < WEIR_FOREVER - now ? now + wait : WEIR_FOREVER, call);
	}

	/* As weir_partition_find(): the index for weir_call.partition, 0 if there is none. */
	std::uint16_t partition_find(const char *name) const noexcept
	{
		return limiter_ != nullptr ? weir_partition_find(limiter_, name) : std::uint16_t{0};
	}

	/*
	 * The current limit without any burst, permits in flight, calls waiting, and room in the
	 * queue.
	 */
	std::uint32_t limit() const noexcept
	{
		return limiter_ != nullptr ? weir_limit(limiter_) : 0;
	}

	std::uint32_t inflight() const noexcept
	{
		return limiter_ != nullptr ? weir_inflight(limiter_) : 0;
	}

	std::uint32_t waiting() const noexcept
	{
		return limiter_ != nullptr ? weir_waiting(limiter_) : 0;
	}

	std::uint32_t queue_size() const noexcept
	{
		return limiter_ != nullptr ? weir_queue_size(limiter_) : 0;
	}

	/* As weir_snapshot_take(). */
	weir_snapshot snapshot() const noexcept
	{
		weir_snapshot now;

		weir_snapshot_init(&now);
		if (limiter_ != nullptr)
			weir_snapshot_take(limiter_, &now);
		return now;
	}

	/* As weir_partition_snapshot_take(); nothing if there is no partition with that index. */
	std::optional<weir_partition_snapshot> partition_snapshot(unsigned index) const noexcept
	{
		weir_partition_snapshot now;

		weir_partition_snapshot_init(&now);
		if (limiter_ == nullptr || weir_partition_snapshot_take(limiter_, index, &now) != 0)
			return std::nullopt;
		return now;
	}

protected:
	limiter_base() noexcept = default;
	explicit limiter_base(weir_limiter *from) noexcept : limiter_(from)
	{
	}

	/* Protected: through public ones a view could be assigned to an owner. */
	limiter_base(const limiter_base &) noexcept = default;
	limiter_base &operator=(const limiter_base &) noexcept = default;
	~limiter_base() = default;

private:
	friend class limiter;

	[[gnu::always_inline]] permit wait_until(weir_time deadline,
						 const weir_call &call) const noexcept
	{
		permit got(limiter_, -EINVAL);

		if (limiter_ != nullptr)
			got.error_ = weir_acquire_for(limiter_, &call, deadline, &got.token_);
		return got;
	}

	weir_limiter *limiter_ = nullptr;
};

/*
 * An owned limiter. Moving it leaves permits, views and the limiter itself where they are. It ends
 * with weir_limiter_destroy(), under the same rules.
 */
class limiter : public limiter_base
{
public:
	/* Empty. */
	limiter() noexcept = default;

	/*
	 * As weir_limiter_create(). Empty if the limiter could not be created; *how, if given,
	 * holds the result: -EINVAL with the sentence of weir_config_check(), -ENOMEM. config is
	 * copied.
	 */
	explicit limiter(const weir_config &config, status *how = nullptr) noexcept
	{
		status went;

		went.error = weir_config_check(&config, went.why, sizeof(went.why));
		if (went)
			went.error = weir_limiter_create(&config, &limiter_);
		if (went.error == -ENOMEM)
			std::snprintf(went.why, sizeof(went.why), "There is not enough memory.");
		if (how != nullptr)
			*how = went;
	}

	/*
	 * As weir_shm_open(): a limiter that processes share, under that name. Destroying it
	 * detaches. Each process opens it after fork(): in a child, a limiter from before the fork
	 * refuses every call, permits from before are empty, and both may be destroyed. owner is a
	 * further user to whom the file may belong, as for weir_shm_open_of().
	 */
	static limiter shm_open(const char *name, unsigned mode, const weir_config &config,
				std::uint32_t members, status *how = nullptr,
				std::uint32_t owner = 0) noexcept
	{
		limiter shared;
		status went;

		went.error = weir_shm_open_of(name, owner, mode, &config, members, &shared.limiter_,
					      went.why, sizeof(went.why));
		if (how != nullptr)
			*how = went;
		return shared;
	}

	/* As weir_shm_open_observer(): read-only. owner as above. */
	static limiter shm_open_observer(const char *name, status *how = nullptr,
					 std::uint32_t owner = 0) noexcept
	{
		limiter shared;
		status went;

		went.error = weir_shm_open_observer_of(name, owner, &shared.limiter_, went.why,
						       sizeof(went.why));
		if (how != nullptr)
			*how = went;
		return shared;
	}

	/* Leaves the other one empty. */
	limiter(limiter &&other) noexcept : limiter_base(std::exchange(other.limiter_, nullptr))
	{
	}

	/* Ends the limiter that it had before. */
	limiter &operator=(limiter &&other) noexcept
	{
		limiter taken(std::move(other));

		std::swap(limiter_, taken.limiter_);
		return *this;
	}

	limiter(const limiter &) = delete;
	limiter &operator=(const limiter &) = delete;

	~limiter()
	{
		weir_limiter_destroy(limiter_);
	}
};

/* A view of a limiter that is owned elsewhere and outlives the view. Copied like a pointer. */
class limiter_ref : public limiter_base
{
public:
	/* Empty. */
	limiter_ref() noexcept = default;

	/* A view of a C limiter, or of an owner's. */
	explicit limiter_ref(weir_limiter *from) noexcept : limiter_base(from)
	{
	}

	limiter_ref(const weir::limiter &owner) noexcept : limiter_base(owner)
	{
	}

	/* Deleted: a temporary owner would leave a dangling view. */
	limiter_ref(const weir::limiter &&) = delete;
};

} // namespace weir

#endif
