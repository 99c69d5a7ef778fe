#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# plugins.sh WEIR_SIM SOURCE_DIR - the limit in docs/writing-a-limit.md can be scored as it is there;
# and plugins that are not valid, or return values that are not limits.
set -u
. "$(dirname "$0")/common.sh"
small=$here/small.cfg
warnings='-std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror'

# The first fenced block.
awk '/^```/ { fence++; next } fence == 1' "$source/docs/writing-a-limit.md" >"$work/target.c"
[ "$(wc -l <"$work/target.c")" -lt 60 ] || complain "the page's plugin has 60 lines or more"
# Flags may be several words.
# shellcheck disable=SC2086
"$CC" $warnings -shared -fPIC -fvisibility=hidden "$work/target.c" -o "$work/target.so" \
	-I"$source/include" || complain "the page's plugin does not compile"

target=$work/target.so
expect 0 '^  target +Holds a latency that you know' list --plugin "$target"
expect 0 '^    target +latency to aim at \(20ms\)' list --plugin "$target" --parameters
expect 0 '^target +ill ' run --plugin "$target" -l target -s "$small"
expect 0 '^target:target=50ms +0\.[0-9]+ ' score -p "$target" -l target,target:target=50ms,vegas \
	-s "$small" -r 1..2
expect 0 '^target +0\.[0-9]+ ' score -p "$target" -l all -s "$small" -r 1
expect 0 '^target:target=10ms ' sweep -p "$target" -l target -s "$small" -r 1 \
	--param target=10ms..100ms
refused 'target is 0, outside' run -p "$target" -l target:target=0ms -s "$small"
refused 'target is 1.2e\+11, outside' run -p "$target" -l target:target=2m -s "$small"
refused 'no limit "target"' run -l target -s "$small"

# In C++ weir_plugin is the same symbol, and visible although all others are hidden.
if command -v c++ >/dev/null; then
	cat >"$work/plus.cpp" <<'END'
#include <weir/weir.h>
static double init(void *, const void *, double) { return 20; }
static double update(void *, const weir_window *w) { return w->limit; }
static weir_limit_ops described()
{
	weir_limit_ops ops = {};
	ops.size = sizeof(ops);
	ops.name = "plus";
	ops.init = init;
	ops.update = update;
	return ops;
}
static const weir_limit_ops plus = described();
const weir_limit_ops *const weir_plugin[] = {&plus, nullptr};
END
	c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -shared -fPIC -fvisibility=hidden \
		"$work/plus.cpp" -o "$work/plus.so" -I"$source/include" ||
		complain "a plugin in C++ does not compile"
	expect 0 '^plus +ill ' run -p "$work/plus.so" -l plus -s "$small"
	expect 0 '^  plus ' list -p "$work/plus.so"
fi

# bad NAME OPTION...: build a defective plugin.
bad()
{
	name=$1
	shift
	"$CC" -std=c11 -w -shared -fPIC "$here/bad.c" -o "$work/$name.so" -I"$source/include" \
		-DBEGIN=20 -DANSWER=20 "$@" || complain "$name does not compile"
}

# refuse PATTERN DEFECT: a plugin with that defect is not loaded.
refuse()
{
	bad wrong -DLIMITS='&bad, NULL' -DHOW="$2"
	refused "wrong.so: $1" list --plugin "$work/wrong.so"
}

refuse 'The limit was built against another version' .size=16
refuse 'The limit has no name of 1 to 15' .name=0
refuse 'The limit has no name of 1 to 15' '.name=""'
refuse 'The limit has no name of 1 to 15' '.name="longer-than-that"'
refuse 'The name of a limit contains characters other than' '.name="Bad"'
refuse 'The name of a limit contains characters other than' '.name="a,b"'
refuse 'The name of a limit contains characters other than' '.name="a:b"'
refuse 'vegas: There is a limit of that name already' '.name="vegas"'
refuse 'all: There is a limit of that name already' '.name="all"'
refuse 'bad: init or update is missing' .init=0
refuse 'bad: init or update is missing' .update=0
refuse 'bad: its state or configuration is too large' .state_size=2305
refuse 'bad: its state or configuration is too large' .config_size=513
refuse 'bad: numbers and observe go together' .numbers=one
refuse 'bad: numbers and observe go together' .observe=observe
refuse 'bad: it shows more than 8 numbers' .numbers=nine,.observe=observe
refuse 'bad: its parameters are missing' .param_count=1
refuse 'bad: parameter 0 is malformed' .params=params,.param_count=1
refuse 'bad: the default of odd is malformed' .params=params+1,.param_count=1
refuse 'bad: out is 3, outside' .params=params+2,.param_count=1
refuse 'bad: it never fits' .check=check
refuse 'window_min is above window_max' .sampling=\&never

bad none -DHOW=.version=1
refused 'none.so: the file has no limits: weir_plugin is not defined' list -p "$work/none.so"
bad empty -DHOW=.version=1 -DLIMITS=0
refused 'empty.so: the file has no limits: weir_plugin is empty' list -p "$work/empty.so"
bad twice -DHOW=.version=1 '-DLIMITS=&bad, &bad, 0'
refused 'twice.so: bad: There is a limit of that name already' list -p "$work/twice.so"
refused 'target: There is a limit of that name already' list -p "$target" -p "$target"
echo "no object" >"$work/text.so"
refused 'text.so: (file too short|invalid ELF header)' list -p "$work/text.so"
refused '/nowhere.so: cannot open shared object file' list -p /nowhere.so
refused 'for a file in the current folder write ./' list -p nowhere.so
refused 'requires an argument' list -p

# Values that are not limits are not used: the limit stays, or is clamped.
for answer in NAN=20 -NAN=20 -1=1 0=1 -INFINITY=1 INFINITY=8388607 1e300=8388607; do
	bad odd -DHOW=.version=1 '-DLIMITS=&bad, 0' -UANSWER "-DANSWER=(${answer%=*})"
	printf 'start,rtt\n1,0.1\n2,0.1\n' >"$work/trace"
	expect 0 "^bad:windowing=sample .* ${answer#*=} +[0-9.]+ +[-0-9.]+\$" replay "$work/trace" \
		-p "$work/odd.so" -l bad:windowing=sample
	expect 0 '^bad ' run -p "$work/odd.so" -l bad -s "$small"
done
bad begin -DHOW=.version=1 '-DLIMITS=&bad, 0' -UBEGIN -DBEGIN=NAN
expect 0 '^bad ' score -p "$work/begin.so" -l bad -s "$small" -r 1
exit "$failed"
