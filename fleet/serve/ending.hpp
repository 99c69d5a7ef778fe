/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ending.hpp - when a stream is finished: once, when it is over and nothing of it is under way.
 *
 * Its write and its cancellation end on their own, in any order, and may do so before or after
 * something has ended the stream. No gRPC, and no lock: the caller holds one.
 */
#ifndef WEIR_FLEET_SERVE_ENDING_HPP
#define WEIR_FLEET_SERVE_ENDING_HPP

namespace weir::serve
{

class ending
{
public:
	/* A write begins. Returns false if it must not. */
	bool write()
	{
		if (over_ || writing_)
			return false;
		writing_ = true;
		return true;
	}

	/* The stream is about to be cancelled. Returns false if no write is under way. */
	bool cut()
	{
		if (!writing_ || cutting_)
			return false;
		cutting_ = true;
		return true;
	}

	bool is_over() const
	{
		return over_;
	}

	/* Each of these returns true if the stream is to be finished now, which is said once. */

	/* Something has ended it. */
	[[nodiscard]] bool end()
	{
		over_ = true;
		return finish();
	}

	/* The write has ended; if it failed, the stream with it. */
	[[nodiscard]] bool written(bool ok)
	{
		writing_ = false;
		over_ = over_ || !ok;
		return finish();
	}

	/* The cancellation has returned. */
	[[nodiscard]] bool was_cut()
	{
		cutting_ = false;
		return finish();
	}

private:
	bool finish()
	{
		if (!over_ || writing_ || cutting_ || finished_)
			return false;
		finished_ = true;
		return true;
	}

	bool writing_ = false, cutting_ = false, over_ = false, finished_ = false;
};

} // namespace weir::serve

#endif
