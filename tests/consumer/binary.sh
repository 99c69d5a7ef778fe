#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# binary.sh LIBRARY - what the shared library exports, and which libraries it needs.
set -u

library=$1
failed=0

exported=$(nm -D --defined-only "$library" | awk '{ print $3 }')
foreign=$(printf '%s\n' "$exported" | grep -v '^weir_')
if [ -n "$foreign" ]; then
	printf 'exported without the prefix weir_:\n%s\n' "$foreign"
	failed=1
fi
if ! printf '%s\n' "$exported" | grep -q '^weir_try_acquire$'; then
	echo "weir_try_acquire is not exported"
	failed=1
fi

# The loader belongs to libc. It knows where the kernel stores a thread's CPU (lib/base/current_cpu.h).
needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
unwanted=$(printf '%s\n' "$needed" | grep -vE '^((libck|libc|libm)\.so|ld-linux[-a-z0-9_]*\.so)\.[0-9]+$')
if [ -n "$unwanted" ]; then
	printf 'needed beyond libck, libc and libm:\n%s\n' "$unwanted"
	failed=1
fi

exit "$failed"
