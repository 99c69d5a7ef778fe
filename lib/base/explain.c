/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/base/explain.h"

#include <stdarg.h>
#include <stdio.h>

void explain(char *why, size_t size, const char *format, ...)
{
	va_list args;

	if (why == NULL || size == 0)
		return;
	va_start(args, format);
	vsnprintf(why, size, format, args);
	va_end(args);
}
