# SPDX-License-Identifier: BSD-2-Clause
# What the tests of weir share: SCRIPT WEIR HOLDER [SCREEN].
# shellcheck shell=sh disable=SC2034

weir=$1
holder=$2
screen=${3-}
work=$(mktemp -d)
base=/w$$
export LC_ALL=C.UTF-8 ARGP_HELP_FMT=rmargin=900
a='' b='' c='' d='' # pids of holders, by their names
failed=0

# Kills all processes that a script started, holders and others, and removes what they leave. A
# subshell has no jobs of its own, so the list goes through a file.
clean_up()
{
	jobs -p >"$work/jobs"
	# shellcheck disable=SC2046
	kill -9 $(cat "$work/jobs") 2>/dev/null
	wait
	rm -rf "$work" /dev/shm"$base"*
}
trap clean_up EXIT

complain()
{
	printf 'FAILED: %s\n' "$*" >&2
	failed=1
}

fail()
{
	complain "$@"
	exit 1
}

# Runs a command until it succeeds, for a few minutes at most.
wait_for()
{
	tries=6000
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || fail "never came true: $*"
		sleep 0.03
	done
}

# answers HOLDER: how many commands it has done. It may print any number of lines before each "done".
answers()
{
	grep -cx done "$work/$1.out"
}

# answered HOLDER COUNT
answered()
{
	[ "$(answers "$1")" -ge "$2" ]
}

# hold HOLDER FD NAME LIMIT [PARTITION=SHARE...]: starts a holder, which reads commands from that
# file descriptor.
hold()
{
	id=$1
	descriptor=$2
	shift 2
	rm -f "$work/$id.in" # of an earlier holder of that name
	mkfifo "$work/$id.in"
	: >"$work/$id.out"
	# A holder that inherited the descriptor of another one would keep that one from seeing its end.
	"$holder" "$@" <"$work/$id.in" >"$work/$id.out" 3>&- 4>&- 5>&- &
	eval "${id}=$! ; exec $descriptor>\"\$work/$id.in\""
	wait_for answered "$id" 1
}

# tell HOLDER FD COMMAND...: sends a command, and waits for the answer
tell()
{
	id=$1
	descriptor=$2
	shift 2
	before=$(answers "$id")
	eval "echo \"$*\" >&$descriptor"
	wait_for answered "$id" $((before + 1))
}

# expect STATUS PATTERN ARGUMENT...: weir exits with that status, and a line of its output matches
# the pattern. With an empty pattern there is no output.
expect()
{
	status=$1 pattern=$2
	shift 2
	"$weir" "$@" >"$work/out" 2>&1 </dev/null
	got=$?
	[ "$got" = "$status" ] || complain "weir $*: status $got, not $status: $(cat "$work/out")"
	[ -n "$pattern" ] || [ ! -s "$work/out" ] || complain "weir $*: $(cat "$work/out")"
	[ -z "$pattern" ] || grep -qE -e "$pattern" "$work/out" || complain "weir $*: no \"$pattern\" in $(cat "$work/out")"
}

# says PATTERN ARGUMENT...: a line of what weir prints matches the pattern. To be waited for where a
# member does something in its own time.
says()
{
	said=$1
	shift
	"$weir" "$@" 2>&1 </dev/null | grep -qE -e "$said"
}

# one_line ARGUMENT...: as expect, and the output is one line.
one_line()
{
	expect "$@"
	[ "$(grep -vc '^Try ' "$work/out")" = 1 ] || complain "not one line: $(cat "$work/out")"
}
