# What the tests of weir share: SCRIPT WEIR HOLDER [SCREEN].
# shellcheck shell=sh disable=SC2034

weir=$1
holder=$2
screen=${3-}
work=$(mktemp -d)
base=/w$$
export LC_ALL=C.UTF-8 ARGP_HELP_FMT=rmargin=900
holders='' a='' b='' c='' d='' # pids of holders, by their names
failed=0

# Holders end when their input does; what they leave if they are killed goes here.
clean_up()
{
	# shellcheck disable=SC2086
	[ -z "$holders" ] || kill -9 $holders 2>/dev/null
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

# Runs a command until it succeeds, for some minutes at most.
wait_for()
{
	tries=6000
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || fail "never came true: $*"
		sleep 0.03
	done
}

# answered HOLDER COUNT
answered()
{
	[ "$(wc -l <"$work/$1.out")" -ge "$2" ]
}

# hold HOLDER FD NAME LIMIT [PARTITION=SHARE...]: starts one, which is told what to do by that file
# descriptor.
hold()
{
	id=$1
	descriptor=$2
	shift 2
	mkfifo "$work/$id.in"
	: >"$work/$id.out"
	# No holder inherits what another one is told by: it would never see its end.
	"$holder" "$@" <"$work/$id.in" >"$work/$id.out" 3>&- 4>&- 5>&- &
	eval "${id}=$! ; holders=\"\$holders $!\" ; exec $descriptor>\"\$work/$id.in\""
	wait_for answered "$id" 1
}

# tell HOLDER FD COMMAND...: waits until it is done
tell()
{
	id=$1
	descriptor=$2
	shift 2
	before=$(wc -l <"$work/$id.out")
	eval "echo \"$*\" >&$descriptor"
	wait_for answered "$id" $((before + 1))
}

# expect STATUS PATTERN ARGUMENT...: it ends so, and a line on standard output or standard error
# matches; of an empty pattern there is none.
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

# one_line ARGUMENT...: as expect; what it says is one line.
one_line()
{
	expect "$@"
	[ "$(grep -vc '^Try ' "$work/out")" = 1 ] || complain "not one line: $(cat "$work/out")"
}
