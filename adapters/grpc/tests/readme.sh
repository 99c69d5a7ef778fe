#!/bin/sh
# Usage: readme.sh README SOURCE PROGRAM - the program in the README is the one that is built, and it
# does what it should.
set -u
readme=$1 source=$2 program=$3
# shellcheck source-path=SCRIPTDIR source=../../../tests/e2e/common.sh
. "$(dirname "$0")/../../../tests/e2e/common.sh"

awk '/^```/ { fence++; next } fence == 1' "$readme" >"$work/source.cpp"
diff "$work/source.cpp" "$source" >"$work/diff.log" || fail "the README shows another program"
"$program" >"$work/said.log" || fail "it failed"
printf 'shop 3\nshop 3\nin flight 0 and 0\n' | diff - "$work/said.log" || fail "it says something else"
echo "the README's program asks and answers"
