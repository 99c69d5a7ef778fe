#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# rules.sh WEIR_SIM SOURCE_DIR - each patch of bench/rules takes a rule away from the limit elastic as
# it is now, and what is left is another limit.
set -u
. "$(dirname "$0")/common.sh"

for patch in "$source"/bench/rules/*.patch; do
	head -n 1 "$patch" | grep -q '[.]$' || complain "$patch does not say what it does"
	mkdir "$work/tree"
	cp -r "$source/limits" "$work/tree"
	patch --silent --fuzz=0 --directory "$work/tree" --strip 1 <"$patch" >"$work/out" 2>&1 ||
		complain "$patch does not apply: $(cat "$work/out")"
	rm -r "$work/tree"
done

# score [CHANGE]: the hash of a run, or nothing
score()
{
	"$source/scripts/limit-variant" elastic "$work/variant" "$@" >&2 &&
		"$tool" run --plugin "$work/variant/varied.so" --limit varied --scenario "$here/small.cfg" |
		grep 'hash'
}

as_it_is=$(score)
[ -n "$as_it_is" ] || complain "the limit as it is has no result"
for change in SMALL=0.2 "$source/bench/rules/within.patch"; do
	changed=$(score "$change")
	[ -n "$changed" ] || complain "$change has no result"
	[ "$changed" != "$as_it_is" ] || complain "$change changes nothing"
done
score NO_SUCH_NUMBER=1 2>/dev/null && complain "a constant that is not there was changed"

exit "$failed"
