/*
 * Waiting for a permit without a thread. What ends a wait is an alarm of gRPC's: set to the
 * deadline, and cancelled, which has it go off at once, by whoever brings the permit. So a wait
 * ends once, in one place, in a thread of gRPC's that may run what it likes.
 */
#ifndef WEIR_ADAPTERS_GRPC_WAITING_HPP
#define WEIR_ADAPTERS_GRPC_WAITING_HPP

#include <weir/grpc.hpp>

#include <grpcpp/alarm.h>

#include <mutex>

namespace weir::grpc_detail
{

/* When a call's own deadline is, on weir_now()'s clock. */
weir_time time_of(gpr_timespec deadline) noexcept;

/* Until when it may wait: the sooner of that and so long from now. */
weir_time wait_until(gpr_timespec deadline, std::chrono::nanoseconds wait) noexcept;

/* The status of who has no permit. */
::grpc::Status refused(const grpc_config &config, gpr_timespec deadline, int error);

class waiting
{
public:
	/* 0, with the permit; -ETIMEDOUT; -ECANCELED: stop() came first. */
	using told = std::function<void(int error, permit got)>;

	/* What may be had at once is told in this call. 0, or -EAGAIN and the like: not told. */
	static int begin(limiter_ref limiter, const weir_call &call, weir_time until, told done,
			 std::shared_ptr<waiting> &handle);

	/* End the wait now, if it has not ended. */
	void stop() noexcept;

	waiting(limiter_ref limiter, weir_time until, told done);
	waiting(const waiting &) = delete;
	waiting &operator=(const waiting &) = delete;
	~waiting() = default;

private:
	static void granted(void *arg);
	void arm(unsigned turn);
	void signal(bool stop) noexcept;
	void alarmed();
	void end(bool stopped);
	void tell(int error, permit got);

	limiter_ref limiter_;
	weir_time until_;
	told done_;
	bool parted_;
	weir_wait wait_{};
	std::shared_ptr<waiting> self_{}; /* until it has ended */

	std::mutex mutex_{};
	std::shared_ptr<::grpc::Alarm> alarm_{}; /* that is set, and has not gone off */
	unsigned turn_ = 0;                      /* alarms that have gone off */
	bool signalled_ = false, stopped_ = false;
};

} // namespace weir::grpc_detail

#endif
