#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# modules.sh WORK_DIR - what pkg-config says of each library is enough to build with its headers.
set -u

work=$1
. "$(dirname "$0")/common.sh"

libdir=$root/usr/lib/$multiarch
export PKG_CONFIG_PATH="$libdir/pkgconfig"
found=0
for file in "$libdir"/pkgconfig/weir-*.pc; do
	module=$(basename "$file" .pc)
	header=${module#weir-}.h
	found=$((found + 1))
	printf '#include <weir/%s>\nint main(void) { return 0; }\n' "$header" >"$work/$module.c"
	# Flags are several words.
	# shellcheck disable=SC2046
	cc -std=c11 "$work/$module.c" -Wl,--no-as-needed $(pkg-config --cflags --libs "$module") \
		-o "$work/$module" || complain "$module cannot be built with"
	LD_LIBRARY_PATH=$libdir "$work/$module" || complain "$module cannot be run with"
done
echo "$found modules"
[ "$found" -gt 0 ] || exit 1
exit "$failed"
