# common.sh - what the tests of weir-sim share: SCRIPT WEIR_SIM SOURCE_DIR. Oracles are kept in a
# folder of each test's own.

tool=$1
source=$2
here=$source/tests/weir-sim
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME="$work" ARGP_HELP_FMT=rmargin=900
failed=0

complain()
{
	printf 'FAILED: %s\n' "$*" >&2
	failed=1
}

# expect STATUS PATTERN ARGUMENT...: it ends so, and says what matches, on standard output or
# standard error; and it never ends by a signal.
expect()
{
	status=$1 pattern=$2
	shift 2
	"$tool" "$@" >"$work/out" 2>&1 </dev/null
	got=$?
	[ "$got" = "$status" ] || complain "weir-sim $*: status $got, not $status: $(cat "$work/out")"
	grep -qE -e "$pattern" "$work/out" || complain "weir-sim $*: no \"$pattern\" in $(cat "$work/out")"
}

# refused PATTERN ARGUMENT...: status 64, and one sentence.
refused()
{
	expect 64 "$@"
	shift
	[ "$(grep -vc '^Try ' "$work/out")" = 1 ] ||
		complain "weir-sim $*: not one sentence: $(cat "$work/out")"
}
