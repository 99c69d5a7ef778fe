/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a permit without a thread. A wait ends with an alarm of gRPC, which is set to the
 * deadline. The thread that releases the permit cancels the alarm, so that it goes off at once. So
 * a wait ends exactly once, in one place, in a thread of gRPC that may run any code.
 */
#ifndef WEIR_ADAPTERS_GRPC_WAITING_HPP
#define WEIR_ADAPTERS_GRPC_WAITING_HPP

#include <weir/grpc.hpp>

#include <grpcpp/alarm.h>

#include <mutex>

namespace weir::grpc_detail
{

/* A call's own deadline, on weir_now()'s clock. */
weir_time time_of(gpr_timespec deadline) noexcept;

/* The end of a wait: the earlier of that deadline and now plus wait. */
weir_time wait_until(gpr_timespec deadline, std::chrono::nanoseconds wait) noexcept;

/* The status of a call without a permit. */
::grpc::Status refused(const grpc_config &config, gpr_timespec deadline, int error);

class waiting
{
public:
	/* error is 0, with the permit; -ETIMEDOUT; or -ECANCELED after stop(). */
	using callback = std::function<void(int error, permit got)>;

	/*
	 * If a permit is free, done is called before this returns. Returns 0, or -EAGAIN or another
	 * error of weir_enqueue_for(), and then done is not called.
	 */
	static int begin(limiter_ref limiter, const weir_call &call, weir_time until, callback done,
			 std::shared_ptr<waiting> &handle);

	/* End the wait now, if it has not ended. */
	void stop() noexcept;

	waiting(limiter_ref limiter, weir_time until, callback done);
	waiting(const waiting &) = delete;
	waiting &operator=(const waiting &) = delete;
	~waiting() = default;

private:
	static void granted(void *arg);
	void arm(unsigned turn);
	void signal(bool stop) noexcept;
	void alarmed();
	void end(bool stopped);
	void finish(int error, permit got);

	limiter_ref limiter_;
	weir_time until_;
	callback done_;
	bool parted_;
	weir_wait wait_{};
	std::shared_ptr<waiting> self_{}; /* set until the wait has ended */

	std::mutex mutex_{};
	std::shared_ptr<::grpc::Alarm> alarm_{}; /* set, and has not gone off */
	unsigned turn_ = 0;                      /* the number of alarms that have gone off */
	bool signalled_ = false, stopped_ = false;
};

} // namespace weir::grpc_detail

#endif
