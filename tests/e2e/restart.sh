#!/bin/sh
# What one run has learned the next one begins with; a file that is no good is said to be so.
# Usage: restart.sh EXAMPLE_RESTART
set -u
restart=${1:-}
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
need_programs "$restart"

file=$work/memory

# run: the example once, its limits in $begins and $ends, what it complains of in errors.
run()
{
	"$restart" "$file" >"$work/out" 2>"$work/errors" || fail "the example ended with $?"
	begins=$(sed -n 's/^begins at //p' "$work/out")
	ends=$(sed -n 's/^ends at //p' "$work/out")
}

run
[ "$begins" = 4 ] || fail "it begins at $begins without a memory"
[ "$ends" -gt 80 ] || fail "it has learned no more than $ends"
[ ! -s "$work/errors" ] || fail "a first run has nothing to complain of"
[ ! -e "$file.new" ] || fail "the file that was written aside is left"

run
[ "$begins" -gt 80 ] || fail "it begins at $begins with a memory"
[ ! -s "$work/errors" ] || fail "a good memory is complained of"

head -c 100 "$file" >"$file.cut" && mv "$file.cut" "$file"
run
[ "$begins" = 4 ] || fail "it begins at $begins with a damaged memory"
[ "$(grep -c damaged "$work/errors")" = 1 ] || fail "one sentence about the damage was expected"

run
[ "$begins" -gt 80 ] || fail "the memory was not made anew"

: >"$file"
run
[ "$begins" = 4 ] || fail "it begins at $begins with an empty file"

file=$work/nowhere/memory
"$restart" "$file" >/dev/null 2>&1 && fail "it saved to a place that does not exist"
"$restart" >/dev/null 2>&1 && fail "a run without a file succeeded"
echo "what was learned was remembered"
