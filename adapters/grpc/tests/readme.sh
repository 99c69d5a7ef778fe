#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Usage: readme.sh README BOTH_SOURCE BOTH_PROGRAM QUEUE_SOURCE QUEUE_PROGRAM - checks that the
# programs in the README are those that are built, and runs them.
set -u
readme=$1
# shellcheck source-path=SCRIPTDIR source=../../../tests/e2e/common.sh
. "$(dirname "$0")/../../../tests/e2e/common.sh"

# shows NUMBER SOURCE PROGRAM OUTPUT: the text between those fences
shows()
{
	awk -v n="$1" '/^```/ { fence++; next } fence == n' "$readme" >"$work/source.cpp"
	grep -v SPDX "$2" | diff "$work/source.cpp" - >"$work/diff.log" ||
		fail "the README shows another program"
	"$3" >"$work/said.log" || fail "$3 failed"
	printf '%b' "$4" | diff - "$work/said.log" || fail "$3 says something else"
}

shows 1 "$2" "$3" 'shop 3\nshop 3\nin flight 0 and 0\n'
shows 3 "$4" "$5" 'shop 3\nin flight 0\n'
echo "the programs of the README work"
