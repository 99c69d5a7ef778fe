#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# arguments.sh WEIR HOLDER - what makes no sense is refused in one sentence, before anything is done.
set -u
. "$(dirname "$0")/common.sh"

one_line 64 'there is no command nonsense' nonsense
expect 64 'Usage' # without any
for command in top stat set reap; do
	expect 0 "^Usage: weir $command" "$command" --help
	one_line 64 'unrecognized option' "$command" --nonsense
	[ $command = set ] || {
		one_line 64 'is not a number of seconds' "$command" --interval=0
		one_line 64 'is not a number of seconds' "$command" --interval=nan
		one_line 64 'is not a number of seconds' "$command" --interval=1x
	}
done
expect 0 'Commands:' --help
for count in 0 -1 x 99999999999; do
	one_line 64 'is not a number of times' stat --count=$count
	one_line 64 'is not a number of times' reap --count=$count
done
one_line 64 'cannot be used with --interval' stat --openmetrics -i 1
one_line 64 'apply to the table only' stat --json --members
one_line 64 'is not a column' top --sort=nonsense
one_line 1 'not a terminal; use weir stat in scripts' top

one_line 64 'A name and a setting' set
one_line 64 'A name and a setting' set "$base"
one_line 64 'is not SETTING=VALUE' set "$base" limit
one_line 64 'there is no such setting' set "$base" colour=red
one_line 64 'there is no such setting' set "$base" live.colour=red
one_line 64 'there is no such setting' set "$base" .share=1
one_line 64 'shadow=yes: not on or off' set "$base" shadow=yes
one_line 64 'the bounds cannot be changed' set "$base" limit_max=7
for limit in 0 -1 1.5 x 8388608 nan; do
	one_line 64 'not a whole number from 1 to' set "$base" limit=$limit
done
one_line 64 'needs the name of one limiter' reap --evict=1
one_line 64 'needs the name of one limiter' reap --evict=1 "$base" "$base-b"
one_line 64 'cannot be used with --interval' reap --evict=1 -c 2 "$base"
for process in x 0 -1 '#' '#0' 4294967296; do
	one_line 64 'is neither a pid nor the number' reap --evict="$process" "$base"
done

# Of a fleet: the address may be said in front, behind, or in the environment.
fleet_arguments()
{
	one_line 64 'there is no command nonsense' fleet nonsense
	expect 64 'Usage: weir fleet' fleet
	for command in list show top make set apply remove drain undrain resize rewind; do
		expect 0 "^Usage: weir fleet $command" fleet $command --help
		one_line 64 'unrecognized option' fleet $command --nonsense
	done
	one_line 1 'address is missing: give --address, or set WEIR_FLEET' fleet list
	one_line 1 'The address must begin with' fleet -a nonsense list
	one_line 1 'The address must begin with' fleet list --address=nonsense
	one_line 1 "$base: there is no such store" fleet -a "shm:$base" list
	one_line 1 'name must consist of letters' fleet -a redis://localhost -n a/b list
	one_line 64 'use weir fleet show for one limit' fleet list payments
	one_line 64 'A limit is required' fleet show
	one_line 64 'A limit is required' fleet remove
	one_line 64 'Only one limit can be removed' fleet remove a b
	one_line 64 'Only one limit can be named' fleet top a b
	one_line 64 'is not a number of seconds' fleet top -i 0
	one_line 64 'A name and a setting' fleet set a
	one_line 64 'A name and capacity=N are required' fleet make a reserved=1
	one_line 64 'A limit and a member are required' fleet drain a
	one_line 64 'there is no such setting' fleet set a colour=red
	one_line 64 'there is no command nonsense' fleet template nonsense
	expect 64 'Usage: weir fleet template' fleet template
	for command in list show match set remove; do
		expect 0 "^Usage: weir fleet template $command" fleet template $command --help
		one_line 64 'unrecognized option' fleet template $command --nonsense
	done
	one_line 64 'use weir fleet template show' fleet template list a
	one_line 64 'A pattern is required' fleet template show
	one_line 64 "A limit's name is required" fleet template match
	one_line 64 'A pattern and a setting are required' fleet template set a
	one_line 64 'there is no such setting' fleet template set a colour=red
	one_line 64 'Either a pattern or --all is required' fleet template remove
	one_line 64 'Either a pattern or --all is required' fleet template remove a --all
	one_line 64 'Only one template' fleet template remove a b
	one_line 64 'is not SETTING=VALUE' fleet set a capacity
	one_line 64 'not a number of seconds from 0.02 to 3600' fleet set a lease=0
	one_line 64 'not a number of seconds from 0.02 to 3600' fleet make a capacity=1 lease=0
	one_line 64 'not fair, proportional, static or none' fleet set a allotment=unfair
	for capacity in '' -1 1.5 x 9007199254740993 99999999999999999999; do
		one_line 64 'not a whole number up to 9007199254740992' fleet set a capacity=$capacity
	done
	for member in '' a/b 'a b' "$(printf '\303\244')" "$(printf '%064d' 0)"; do
		one_line 64 'is neither a member.s number' fleet drain a "$member"
		one_line 64 'is neither a member.s number' fleet undrain a b "$member"
	done
}
if "$weir" fleet list 2>&1 | grep -q 'built without'; then
	one_line 1 '^weir fleet: This program was built without libweir-fleet' fleet list
else
	fleet_arguments
fi

# Names that are none.
long=$(printf '%0300d' 0)
for command in stat reap 'set' top; do
	more=''
	[ $command != set ] || more=limit=1
	# shellcheck disable=SC2086
	{
		[ $command = top ] || one_line 1 "^weir: $base: cannot be opened: No such file" $command "$base" $more
		[ $command = top ] || one_line 1 'the name is too long' $command "$long" $more
		[ $command = top ] || one_line 1 '/a/b: cannot be opened: Invalid' $command a/b $more
	}
done
exit $failed
