/*
 * weir/shapes.hpp - shapes for C++.
 *
 *	weir::token t;
 */
#pragma once
#include <weir/weir.h>

namespace weir
{

/* A token. Released when it goes. */
class token
{
public:
	/* Nothing in it. */
	token() noexcept = default;

	/* Wait. */
	void wait(int seconds_that_it_may_take_at_most = 1,
		  const options &how_it_is_done = {}) noexcept;

	/*
	 * Release.
	 */
	void release(outcome how = outcome::success) noexcept
	{
		x();
	}
};

} // namespace weir
