#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Wrong arguments of weir-real: a message and a failure status.
# Usage: arguments.sh WEIR_REAL
set -u
tool=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

# expect NAME PATTERN ARGUMENT...: weir-real fails with a message that matches the pattern.
expect()
{
	name=$1 pattern=$2
	shift 2
	if "$tool" "$@" >"$work/output" 2>&1; then
		echo "FAIL: $name: it succeeds"
		bad=1
	elif ! grep -q -e "$pattern" "$work/output"; then
		echo "FAIL: $name: nothing like '$pattern' in"
		sed 's/^/	/' "$work/output"
		bad=1
	fi
}

echo 'name = "odd"; client = { retries = 2; };
server = ( { name = "a"; work = "1ms"; } );
phases = ( { length = "1s"; load = 1; } );' >"$work/odd.cfg"
echo 'name = "broken";' >"$work/broken.cfg"

expect odd_limit 'no limit' --limit nonsense
expect odd_parameter 'fixed:limit=x: ' --limit fixed:limit=x
expect odd_scenario 'There is no scenario "nowhere"' --scenario nowhere
expect no_file 'No such file' --scenario "$work/nothing.cfg"
expect broken_file 'broken.cfg:[0-9]*: ' --scenario "$work/broken.cfg"
expect unsupported 'cannot be run with threads: Its clients retry' --scenario "$work/odd.cfg"
expect odd_seed 'not a seed: x' --seed x
expect negative_seed 'not a seed: -1' --seed=-1
expect no_seeds 'not a number from 1 to' --seeds 0
expect many_seeds 'not a number from 1 to' --seeds 1000000
expect odd_beside 'not a number from 1 to' --beside 2x
expect odd_processes 'not a number from 1 to 64' --processes 65
expect odd_repeats 'not a number from 1 to' --repeats 0
expect odd_option 'unrecognized option' --strange
expect odd_word 'Too many arguments' healthy

"$tool" --list | grep -q '^  overload ' || {
	echo "FAIL: the list has no overload"
	bad=1
}
exit $bad
