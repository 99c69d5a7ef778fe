# SPDX-License-Identifier: BSD-2-Clause
# common.sh - common parts of the tests of weir-sim: SCRIPT WEIR_SIM SOURCE_DIR. Each test has its own
# folder with a cache of oracles.

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

# expect STATUS PATTERN ARGUMENT...: weir-sim exits with that status, not by a signal, and prints a
# match of the pattern on standard output or standard error.
expect()
{
	status=$1 pattern=$2
	shift 2
	"$tool" "$@" >"$work/out" 2>&1 </dev/null
	got=$?
	[ "$got" = "$status" ] || complain "weir-sim $*: status $got, not $status: $(cat "$work/out")"
	grep -qE -e "$pattern" "$work/out" || complain "weir-sim $*: no \"$pattern\" in $(cat "$work/out")"
}

# refused PATTERN ARGUMENT...: the exit status is 64, with one sentence.
refused()
{
	expect 64 "$@"
	shift
	[ "$(grep -vc '^Try ' "$work/out")" = 1 ] ||
		complain "weir-sim $*: not one sentence: $(cat "$work/out")"
}
