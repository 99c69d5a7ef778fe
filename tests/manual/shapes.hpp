/* SPDX-License-Identifier: BSD-2-Clause */
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
class token : public thing
{
public:
	/* Nothing in it. */
	token() noexcept = default;

	/* Out of a number; the body is none of the page's. */
	explicit token(int number) noexcept : thing(number), n_{}
	{
		/* An alias { of its own. */
		using wide = long;

		if (wide(number) > 0)
			x("}");
	}

	/* Not to be had. */
	token(const token &) = delete;
	~token();

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

	[[gnu::always_inline]] void success() noexcept
	{
		release(outcome::success);
	}

protected:
	/* Not for the public. */
	token(float x);

private:
	struct inner {
		int a = 0; /* not shown */
	};
	int n_ = 0;
};

/* What is left. */
struct rest {
	int error = 0;     /* 0, or more */
	std::string why{}; /* a sentence; or none */

	bool good() const
	{
		return error == 0;
	}
};

/* A function, after the classes. */
template <class T> constexpr int twice(T of) noexcept
{
	return 2 * of;
}

} // namespace weir
