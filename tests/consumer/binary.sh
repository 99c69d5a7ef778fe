#!/bin/sh
# binary.sh LIBRARY - what the shared library shows to others, and what it wants of them.
set -u

library=$1
failed=0

exported=$(nm -D --defined-only "$library" | awk '{ print $3 }')
foreign=$(printf '%s\n' "$exported" | grep -v '^weir_')
if [ -n "$foreign" ]; then
	printf 'exported, and not ours:\n%s\n' "$foreign"
	failed=1
fi
if ! printf '%s\n' "$exported" | grep -q '^weir_try_acquire$'; then
	echo "weir_try_acquire is not exported"
	failed=1
fi

# The loader is libc's own: it says where the kernel tells a thread its CPU (lib/base/current_cpu.h).
needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
unwanted=$(printf '%s\n' "$needed" | grep -vE '^((libck|libc|libm)\.so|ld-linux[-a-z0-9_]*\.so)\.[0-9]+$')
if [ -n "$unwanted" ]; then
	printf 'needed beyond libck, libc and libm:\n%s\n' "$unwanted"
	failed=1
fi

exit "$failed"
