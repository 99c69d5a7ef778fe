#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# headers.sh PREFIX - every installed header compiles alone without a warning: C headers as
# C11 and C++11, C++ headers as C++17 and C++20.
set -u

prefix=$1
warnings='-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror'
failed=0

# alone COMPILER STANDARD LANGUAGE HEADER: skipped where there is no such compiler.
alone()
{
	command -v "$1" >/dev/null || return 0
	# shellcheck disable=SC2086
	printf '#include <%s>\n#include <%s>\n' "$4" "$4" |
		"$1" -std="$2" $warnings -I"$prefix/include" \
			-x "$3" -fsyntax-only - && return 0
	echo "$4 does not compile alone: $1 -std=$2"
	failed=1
}

found=0
for path in "$prefix"/include/weir/*.h; do
	header=weir/$(basename "$path")
	for cc in gcc clang; do
		alone "$cc" c11 c "$header"
	done
	for cxx in g++ clang++; do
		alone "$cxx" c++11 c++ "$header"
	done
	found=$((found + 1))
done
for path in "$prefix"/include/weir/*.hpp; do
	for cxx in g++ clang++; do
		alone "$cxx" c++17 c++ "weir/$(basename "$path")"
		alone "$cxx" c++20 c++ "weir/$(basename "$path")"
	done
	found=$((found + 1))
done

echo "$found headers"
[ "$found" -gt 0 ] || exit 1
exit "$failed"
