/* SPDX-License-Identifier: BSD-2-Clause */
/* In a file of its own, as a test of the board has another clock. */
#include "board.hpp"

#include <ctime>

namespace weir::serve
{

weir_time clock_now()
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return static_cast<weir_time>(t.tv_sec) * WEIR_S + static_cast<weir_time>(t.tv_nsec);
}

} // namespace weir::serve
