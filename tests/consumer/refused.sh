#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A processor with 32 bits is refused when the build is configured, in one sentence. No program is
# linked, so the libraries for it need not be here. Usage: refused.sh CMAKE SOURCE CC BUILD
set -u
cmake=$1 source=$2 cc=$3 build=$4
sentence='weir needs a 64-bit processor with lock-free 64-bit atomics'

rm -rf "$build"
mkdir -p "$build" || exit 1
if ! echo 'int none;' | "$cc" -m32 -x c -c - -o "$build/none.o" 2>/dev/null; then
	echo "SKIPPED: $cc does not build for 32 bits"
	exit 77
fi

# configure FLAGS NAME: prints what CMake says.
configure() {
	CFLAGS=$1 "$cmake" -S "$source" -B "$build/$2" -DCMAKE_C_COMPILER="$cc" \
		-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY -DWEIR_TESTS=OFF -DWEIR_BENCH=OFF \
		-DWEIR_FLEET=OFF -DWEIR_TOOL=OFF -DWEIR_ADAPTERS=OFF -DWEIR_EXAMPLES=OFF \
		-DWEIR_MAN=OFF >"$build/$2.output" 2>&1
}

if configure -m32 narrow || ! grep -q "^ *$sentence\$" "$build/narrow.output"; then
	echo "FAIL: 32 bits are not refused with \"$sentence\":"
	cat "$build/narrow.output"
	exit 1
fi
if ! configure -m64 wide; then
	echo 'FAIL: 64 bits are refused:'
	cat "$build/wide.output"
	exit 1
fi
