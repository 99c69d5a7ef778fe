#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# docs.sh DOCS_DIR PREFIX LIBDIR WORK_DIR - the limit in the documentation compiles, and becomes
# a plugin by the documented commands; the code of the C++ page compiles; and two processes of the
# fleet's first program share its rate.
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

[ -e "$libdir/pkgconfig/weir-fleet.pc" ] || exit 0

# The program is compiled by the documented command, and with warnings.
awk '/^```c$/ { block++; inside = 1; next } /^```/ { inside = 0 } inside && block == 1' \
	"$docs/fleet.md" >"$work/pay.c"
# shellcheck disable=SC2086
cc -std=c11 $warnings -I"$prefix/include" -c "$work/pay.c" -o "$work/pay.o"
cd "$work"
export PKG_CONFIG_PATH="$libdir/pkgconfig" LD_LIBRARY_PATH="$libdir"
eval "$(sed -n '/^    cc pay\.c /{s/^    //p;q}' "$docs/fleet.md")"

export WEIR_FLEET="shm:/weir-docs-$$"
pids=
trap 'kill $pids 2>/dev/null; rm -f "/dev/shm/weir-docs-$$"' EXIT
for process in a b; do
	./pay >"$process.log" &
	pids="$pids $!"
done

# half PROCESS: its share is half of the rate, at last
half()
{
	tail -n 1 "$1.log" | grep -q 'now 250 per second'
}

tries=1200
until half a && half b; do
	tries=$((tries - 1))
	if [ $tries -eq 0 ]; then
		echo "FAILED: no halves: $(tail -n 2 a.log) $(tail -n 2 b.log)" >&2
		exit 1
	fi
	sleep 0.2
done
[ ! -x "$prefix/bin/weir" ] || "$prefix/bin/weir" fleet show payments 2>/dev/null |
	grep -q '^payments: capacity 500, effective 500, granted 500, wanted 1000$'
