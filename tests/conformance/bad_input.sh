#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Damaged input makes weir-conform print a sentence and return a status; it never crashes
# and never passes. Usage: bad_input.sh TOOL TRACES
set -u
tool=$1
traces=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

report() {
	echo "FAIL: $1"
	sed 's/^/	/' "$work/output"
	bad=1
}

# expect NAME STATUS PATTERN ARGUMENTS...: the tool must return STATUS and print PATTERN.
expect() {
	name=$1 status=$2 pattern=$3
	shift 3
	"$tool" "$@" >"$work/output" 2>&1
	got=$?
	[ "$got" -eq "$status" ] || report "$name: status $got instead of $status"
	grep -q -e "$pattern" "$work/output" || report "$name: no '$pattern' in"
}

# damage NAME PATTERN FILE SED: FILE edited by SED must fail with PATTERN.
damage() {
	mkdir "$work/$1"
	sed -e "$4" "$traces/$3" >"$work/$1/damaged.csv"
	expect "$1" 1 "damaged.csv:*[0-9]*: .*$2" "$work/$1"
	expect "$1" 1 '^0 passed, 1 failed, 0 skipped$' "$work/$1"
}

aimd=aimd_10_initial_outside.csv
vegas=vegas_21_probe_2.csv
windowed=windowed_aimd_02_p99.csv
simple=limiter/simple_01_settable.csv

damage fewer_rows 'header says 500 rows, but there are' $aimd '400,$d'
damage header_only 'the file ends within the header' $aimd '/^[^#]/,$d'
damage short_row 'the row has fewer than 6 fields' $aimd '100s/,[^,]*$//'
damage long_row 'the row has more than 6 fields' $aimd '100s/$/,1/'
damage lost_row "the row's number is" $aimd '100s/^/1/'
damage odd_number 'not a valid number in its column' $aimd '100s/,[0-9]*$/,2x/'
damage huge_number 'not a valid number in its column' $aimd '100s/,[0-9]*$/,99999999999999999999/'
damage wrong_limit 'row 0: limit_after: expected 99999' $aimd '/^0,/s/,[0-9]*$/,99999/'
damage wrong_columns 'the columns are not' $aimd 's/^i,start_ns/i,begin_ns/'
damage wrong_key 'the header ends without the key backoff_ratio' $aimd 's/backoff_ratio/backof/'
damage no_format 'the header ends without the key format' $aimd '/^# format/d'
damage odd_format 'unknown format 2' $aimd 's/^# format=1/# format=2/'
damage no_value "header line without '='" $aimd 's/^# format=1/# format/'
damage odd_algorithm 'unknown algorithm steady' $aimd 's/^# algorithm=aimd/# algorithm=steady/'
damage odd_parameter 'refused: ' $aimd 's/^# backoff_ratio=.*/# backoff_ratio=2/'
damage wrong_final 'final.estimated_limit_hex: expected' $vegas 's/\(estimated_limit_hex=\).*/\10x1p0/'
damage wrong_initial 'the initial limit is not' $windowed 's/\(delegate.initial_limit=\).*/\120000000/'
damage odd_list 'is not a list of numbers' $vegas 's/\(probe_jitters=\)/\1x,/'
damage long_list 'probes: expected' $vegas 's/\(probe_jitters=.*\)/\1,0.75/'
damage odd_window 'window=median is unknown' $windowed 's/^# window=.*/# window=median/'
damage odd_percentile 'percentile=high is not a number' $windowed 's/^# percentile=.*/# percentile=high/'
damage odd_op 'unknown op Q' $simple '/^0,/s/,A,/,Q,/'
damage not_held 'token 5 is not in use' $simple '/^1,/s/,x,0,/,x,5,/'
damage odd_admitted 'admitted is neither 0 nor 1' $simple '/^0,/s/,1,1,/,2,1,/'
damage not_admitted 'admitted: expected 0, got 1' $simple '/^0,/s/,1,1,/,0,1,/'

mkdir "$work/cut" "$work/empty" "$work/nothing" "$work/missing" "$work/binary"
head -c 9000 "$traces/$aimd" >"$work/cut/cut.csv"
expect cut 1 'cut.csv:[0-9]*: the last line is cut off' "$work/cut"
: >"$work/nothing/nothing.csv"
expect nothing 1 'nothing.csv: the file is empty' "$work/nothing"
printf 'file\nlost.csv\n' >"$work/missing/index.tsv"
expect missing 1 'lost.csv: cannot open: ' "$work/missing"
printf '# a=\000b\n' >"$work/binary/binary.csv"
expect binary 1 'binary.csv: the file is not text' "$work/binary"

expect no_directory 2 'nowhere: No such file' "$work/nowhere"
expect no_trace 2 'empty: contains no trace' "$work/empty"
expect one_of_two 2 '^1 passed, 0 failed, 0 skipped$' --only fixed "$work/empty" "$traces"
expect no_such_name 2 'no trace has this class and name' --only steady "$traces"
expect no_argument 2 '^usage: '
expect odd_class 2 '^usage: ' --class strange "$traces"
expect odd_option 2 '^usage: ' --strange "$traces"
expect help 0 '^usage: ' --help
expect only 0 '^2 passed, 0 failed, 0 skipped$' --only fixed,settable "$traces"

exit $bad
