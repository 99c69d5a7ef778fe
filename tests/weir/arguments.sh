#!/bin/sh
# arguments.sh WEIR HOLDER - what makes no sense is refused in one sentence, before anything is done.
set -u
. "$(dirname "$0")/common.sh"

one_line 64 'there is no command nonsense' nonsense
expect 64 'Usage' # without any
for command in top stat set reap; do
	expect 0 "^Usage: weir $command" "$command" --help
	one_line 64 'unrecognized option' "$command" --nonsense
	[ $command = set ] || {
		one_line 64 'is no number of seconds' "$command" --interval=0
		one_line 64 'is no number of seconds' "$command" --interval=nan
		one_line 64 'is no number of seconds' "$command" --interval=1x
	}
done
expect 0 'Commands:' --help
for count in 0 -1 x 99999999999; do
	one_line 64 'is no number of times' stat --count=$count
	one_line 64 'is no number of times' reap --count=$count
done
one_line 64 'leave out --interval' stat --openmetrics -i 1
one_line 64 'are for the table' stat --json --members
one_line 64 'is no column' top --sort=nonsense
one_line 1 'no terminal; for programs there is weir stat' top

one_line 64 'A name and what is to be set' set
one_line 64 'A name and what is to be set' set "$base"
one_line 64 'is not SETTING=VALUE' set "$base" limit
one_line 64 'there is no such setting' set "$base" colour=red
one_line 64 'there is no such setting' set "$base" live.colour=red
one_line 64 'there is no such setting' set "$base" .share=1
one_line 64 'shadow=yes: it is on or off' set "$base" shadow=yes
one_line 64 'bounds are among what processes must agree on' set "$base" limit_max=7
for limit in 0 -1 1.5 x 8388608 nan; do
	one_line 64 'it is a whole number from 1 to' set "$base" limit=$limit
done
one_line 64 'is for one limiter: name it' reap --evict=1
one_line 64 'is for one limiter: name it' reap --evict=1 "$base" "$base-b"
one_line 64 'is done once' reap --evict=1 -c 2 "$base"
for process in x 0 -1 '#' '#0' 4294967296; do
	one_line 64 'is neither a pid nor the number' reap --evict="$process" "$base"
done

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
