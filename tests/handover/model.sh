#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# model.sh FOLDER [mutants | CASE] - explore the models of docs/hand-over.md by spin, in a folder of
# its own. Without a case: all of them as they are, and each statement must be reached. mutants: with
# each fault that a macro MUTANT_... puts into them, and each must be found.
#
# Prints the number of states of each. Exits with 77 if spin is not installed.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
folder=$1
failed=0

# The case, its model, and its bounds.
cases='
ownership    ownership -DPARTITIONS=2 -DCLAIMS=2
forgetting   ownership -DPARTITIONS=1 -DCLAIMS=3 -DFORGETS=1
checkpoints  ownership -DPARTITIONS=1 -DCLAIMS=2 -DCHECKPOINTS=3 -DLATE=2
rewinds      ownership -DPARTITIONS=1 -DCLAIMS=2 -DCHECKPOINTS=2 -DREWINDS=1 -DLATE=2
division     division
reservation  division -DIMMORTAL
'

# The fault, its model, and its bounds.
mutants='
NO_MARGIN             ownership -DPARTITIONS=1
LEASE_OF_ANSWER       ownership -DPARTITIONS=1
REGAINED              ownership -DPARTITIONS=1
ERASED_WHILE_OWNED    ownership -DPARTITIONS=1
TAKEN_AFTER_REQUEST   ownership -DPARTITIONS=1
NOT_LEARNED           ownership -DPARTITIONS=1 -DFORGETS=1
FENCE_UNCHECKED       ownership -DPARTITIONS=1 -DCHECKPOINTS=3 -DLATE=2
VERSION_UNCHECKED     ownership -DPARTITIONS=1 -DCHECKPOINTS=3 -DLATE=2
SET_BACK_UNREAD       ownership -DPARTITIONS=1 -DCHECKPOINTS=3 -DREWINDS=1
SET_BACK_ERASES       ownership -DPARTITIONS=1 -DCHECKPOINTS=3 -DREWINDS=1
RESERVED_FOR_EVER     division -DIMMORTAL
HAND_OVER_UNBOUNDED   division
NOT_WITHDRAWN         division
'

# explore MODEL SPIN_OPTION...: what the search prints
explore()
{
	local model=$1 search=-DSAFETY run=()

	shift
	if [ "$model" = division ]; then
		search=-DNFAIR=4
		run=(-a -f)
	fi
	rm -f pan* ./*.trail
	spin -a "$@" "$here/$model.pml" && cc -O2 -w "$search" -DMEMLIM=4000 -o pan pan.c &&
		./pan -m100000 -w24 "${run[@]}"
}

fail()
{
	printf '%s: %s\n' "$1" "$2"
	grep -vE '^(Depth|	|$)' out | head -n 60
	failed=1
}

# hold NAME MODEL SPIN_OPTION...
hold()
{
	local name=$1

	shift
	explore "$@" >out 2>&1
	if ! grep -q 'errors: 0$' out || grep -qE 'Search not completed|depth too small' out; then
		fail "$name" 'there is an error, or the search was not completed'
	elif grep -E '[.]pml:[0-9]+, state' out | grep -qv -e '-end-'; then
		fail "$name" 'not all statements were reached'
	else
		printf '%-12s %10d states: no error\n' "$name" \
			"$(awk '/states, stored/ { print $1 }' out)"
	fi
}

# find NAME MODEL SPIN_OPTION...
find_fault()
{
	local name=$1

	shift
	explore "$@" "-DMUTANT_$name" >out 2>&1
	if grep -qE 'assertion violated|acceptance cycle' out && ! grep -q 'errors: 0$' out; then
		printf '%-20s found after %d states\n' "$name" \
			"$(awk '/states, stored/ { print $1 }' out)"
	else
		fail "$name" 'the fault was not found'
	fi
}

command -v spin >/dev/null || { echo 'spin is not installed'; exit 77; }
mkdir -p "$folder" && cd "$folder" || exit 2

# shellcheck disable=SC2086
if [ "${2-}" = mutants ]; then
	while read -r name options; do
		[ -z "$name" ] || find_fault "$name" $options
	done <<<"$mutants"
else
	while read -r name options; do
		[ -z "$name" ] || [ "${2-$name}" != "$name" ] || hold "$name" $options
	done <<<"$cases"
fi
exit "$failed"
