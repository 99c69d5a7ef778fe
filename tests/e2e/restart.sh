#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A run starts with the state that the previous one saved; an invalid file is reported.
# Usage: restart.sh EXAMPLE_RESTART
set -u
restart=${1:-}
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
need_programs "$restart"

file=$work/memory

# run: run the example once; sets $begins and $ends, and writes its errors to a file.
run()
{
	"$restart" "$file" >"$work/out" 2>"$work/errors" || fail "the example ended with $?"
	begins=$(sed -n 's/^begins at //p' "$work/out")
	ends=$(sed -n 's/^ends at //p' "$work/out")
}

run
[ "$begins" = 8 ] || fail "it begins at $begins without saved state"
[ "$ends" -gt 80 ] || fail "it has learned no more than $ends"
[ ! -s "$work/errors" ] || fail "a first run printed errors"
[ ! -e "$file.new" ] || fail "the file that was written aside is left"

run
[ "$begins" -gt 80 ] || fail "it begins at $begins with saved state"
[ ! -s "$work/errors" ] || fail "valid state gave errors"

head -c 100 "$file" >"$file.cut" && mv "$file.cut" "$file"
run
[ "$begins" = 8 ] || fail "it begins at $begins with damaged state"
[ "$(grep -c damaged "$work/errors")" = 1 ] || fail "one sentence about the damage was expected"

run
[ "$begins" -gt 80 ] || fail "the state was not saved again"

: >"$file"
run
[ "$begins" = 8 ] || fail "it begins at $begins with an empty file"

file=$work/nowhere/memory
"$restart" "$file" >/dev/null 2>&1 && fail "it saved to a place that does not exist"
"$restart" >/dev/null 2>&1 && fail "a run without a file succeeded"
echo "the state survives a restart"
