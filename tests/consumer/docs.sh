#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# docs.sh DOCS_DIR PREFIX LIBDIR WORK_DIR - the limit in the documentation compiles, and becomes
# a plugin by the documented commands; and the code of the C++ page compiles.
set -eu

docs=$1
prefix=$2
libdir=$prefix/$3
work=$4

warnings='-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror'

mkdir -p "$work"
# The first fenced block.
awk '/^```/ { fence++; next } fence == 1' "$docs/writing-a-limit.md" >"$work/target.c"
# Flags must split into words.
# shellcheck disable=SC2086
cc -std=c11 $warnings -I"$prefix/include" -c "$work/target.c" -o "$work/target.o"
# The first command of the next block, and weir-sim if it was built.
(
	cd "$work"
	export PKG_CONFIG_PATH="$libdir/pkgconfig"
	rm -f target.so
	eval "$(sed -n '/^```sh/,/^```/{/^cc /p}' "$docs/writing-a-limit.md")"
	[ ! -x "$prefix/bin/weir-sim" ] ||
		"$prefix/bin/weir-sim" list --plugin ./target.so | grep -q '^  target '
)

# Two blocks: functions, and a statement, which needs a function around it.
cat >"$work/cpp.hpp" <<'END'
#include <string>
struct request {
};
struct response {
	explicit response(int s) : status(s) {}
	int status;
};
response serve(const request &request);
END
{
	awk '/^```cpp/ { block++; inside = 1; next } /^```/ { inside = 0 } inside && block == 1' \
		"$docs/cpp.md"
	echo 'bool once(weir::limiter_ref limiter, const request &request);'
	echo 'bool once(weir::limiter_ref limiter, const request &request) {'
	awk '/^```cpp/ { block++; inside = 1; next } /^```/ { inside = 0 } inside && block == 2' \
		"$docs/cpp.md"
	echo 'return answer.has_value(); }'
} >"$work/cpp.cpp"
# shellcheck disable=SC2086
c++ -std=c++17 $warnings -I"$prefix/include" -include "$work/cpp.hpp" -c "$work/cpp.cpp" \
	-o "$work/cpp.o"
