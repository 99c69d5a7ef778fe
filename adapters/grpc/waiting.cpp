/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limiter calls granted() in the thread that releases the permit, perhaps before the alarm is
 * set. It guarantees that granted() has returned when the wait ends (weir/wait.h). A thread that
 * stops a wait holds a reference to it.
 */

#include "waiting.hpp"

#include <grpc/support/time.h>

namespace weir::grpc_detail
{

namespace
{

/* The interval of polls that weir/wait.h requires with partitions. */
constexpr weir_dur PARTITIONS_LOOK = 100 * WEIR_MS;

gpr_timespec timespec_of(weir_time time) noexcept
{
	if (time >= INT64_MAX)
		return gpr_inf_future(GPR_CLOCK_MONOTONIC);
	gpr_timespec at = gpr_time_from_nanos(static_cast<int64_t>(time), GPR_TIMESPAN);

	at.clock_type = GPR_CLOCK_MONOTONIC;
	return at;
}

} // namespace

weir_time time_of(gpr_timespec deadline) noexcept
{
	const gpr_timespec at = gpr_convert_clock_type(deadline, GPR_CLOCK_MONOTONIC);

	if (gpr_time_cmp(at, gpr_inf_future(GPR_CLOCK_MONOTONIC)) == 0)
		return WEIR_FOREVER;
	if (at.tv_sec < 0)
		return 0;
	return static_cast<weir_time>(at.tv_sec) * WEIR_S + static_cast<weir_time>(at.tv_nsec);
}

weir_time wait_until(gpr_timespec deadline, std::chrono::nanoseconds wait) noexcept
{
	const weir_time now = weir_now(), own = time_of(deadline);
	const weir_dur longest = dur(wait);
	const weir_time until = longest < WEIR_FOREVER - now ? now + longest : WEIR_FOREVER;

	return until < own ? until : own;
}

::grpc::Status refused(const grpc_config &config, gpr_timespec deadline, int error)
{
	if (error == -ETIMEDOUT && time_of(deadline) <= weir_now())
		return ::grpc::Status(::grpc::StatusCode::DEADLINE_EXCEEDED, "no permit in time");
	if (error == -ECANCELED)
		return ::grpc::Status(::grpc::StatusCode::CANCELLED, "cancelled while it waited");
	if (error == -EINVAL)
		return ::grpc::Status(::grpc::StatusCode::INTERNAL, "no such kind of call");
	return ::grpc::Status(config.refusal, "the limit is reached");
}

waiting::waiting(limiter_ref limiter, weir_time until, callback done)
	: limiter_(limiter), until_(until), done_(std::move(done)),
	  parted_(weir_partition_count(limiter.get()) > 0)
{
}

int waiting::begin(limiter_ref limiter, const weir_call &call, weir_time until, callback done,
		   std::shared_ptr<waiting> &handle)
{
	const bool bypass = (call.flags & WEIR_CALL_BYPASS) != 0;
	const bool waits = !bypass && until > weir_now();

	/* If a permit is free, do not enter the queue. */
	if (!waits || (limiter.waiting() == 0 && limiter.inflight() < limiter.limit())) {
		permit got = limiter.try_acquire(call);

		if (got) {
			done(0, std::move(got));
			return 0;
		}
		if (!waits || got.error() != -EAGAIN)
			return got.error();
	}
	handle = std::make_shared<waiting>(limiter, until, std::move(done));
	const std::shared_ptr<waiting> own = handle;
	const int error = weir_enqueue_for(limiter.get(), &call, granted, own.get(), &own->wait_);

	if (error != 0) {
		handle.reset();
		return error;
	}
	own->self_ = own;
	own->arm(0);
	return 0;
}

/*
 * Either signal() finds the alarm, or this function finds the signal. An alarm that has already
 * gone off is not stored.
 */
void waiting::arm(unsigned turn)
{
	const weir_time look = weir_now() + PARTITIONS_LOOK;
	const auto alarm = std::make_shared<::grpc::Alarm>();
	bool late;

	alarm->Set(timespec_of(parted_ && look < until_ ? look : until_),
		   [this](bool) { alarmed(); });
	{
		const std::lock_guard<std::mutex> lock(mutex_);

		late = signalled_;
		if (turn == turn_)
			alarm_ = alarm;
	}
	if (late)
		alarm->Cancel();
}

void waiting::signal(bool stop) noexcept
{
	std::shared_ptr<::grpc::Alarm> alarm;
	{
		const std::lock_guard<std::mutex> lock(mutex_);

		signalled_ = true;
		stopped_ = stopped_ || stop;
		alarm = alarm_;
	}
	if (alarm != nullptr)
		alarm->Cancel();
}

void waiting::granted(void *arg)
{
	static_cast<waiting *>(arg)->signal(false);
}

void waiting::stop() noexcept
{
	signal(true);
}

void waiting::alarmed()
{
	const std::shared_ptr<waiting> own = self_;
	std::shared_ptr<::grpc::Alarm> alarm;
	bool signalled, stopped;
	unsigned turn;
	weir_token token{};
	{
		const std::lock_guard<std::mutex> lock(mutex_);

		alarm = std::move(alarm_);
		turn = ++turn_;
		signalled = signalled_;
		stopped = stopped_;
	}
	if (signalled || weir_now() >= until_) {
		end(stopped);
	} else if (weir_poll(limiter_.get(), &wait_, &token) == 0) {
		finish(0, permit::adopt(limiter_.get(), token));
	} else {
		arm(turn);
	}
}

void waiting::end(bool stopped)
{
	weir_token token{};
	const bool came = weir_cancel(limiter_.get(), &wait_, &token) == -EALREADY;
	permit got = permit::adopt(limiter_.get(), token);

	if (stopped) {
		got.cancelled();
		finish(-ECANCELED, permit());
	} else if (came) {
		finish(0, std::move(got));
	} else {
		finish(-ETIMEDOUT, permit());
	}
}

/* Drops done_ before the call, because the function may hold a reference to this object. */
void waiting::finish(int error, permit got)
{
	const callback done = std::move(done_);

	self_.reset();
	done(error, std::move(got));
}

} // namespace weir::grpc_detail

namespace weir
{

status grpc_config::check(limiter_ref limiter) const noexcept
{
	status how;
	const char *why = nullptr;

	if (limiter.get() == nullptr)
		why = "there is no limiter.";
	else if (wait.count() > 0 && limiter.queue_size() == 0)
		why = "wait needs a limiter with a queue (weir_config.queue).";
	else if (refusal == ::grpc::StatusCode::OK)
		why = "refusal cannot be OK: clients would take a refusal for an answer.";
	if (why != nullptr) {
		how.error = -EINVAL;
		std::snprintf(how.why, sizeof(how.why), "%s", why);
	}
	return how;
}

} // namespace weir
