#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# replay.sh WEIR_SIM SOURCE_DIR - traces: what is read, the results, and errors with their line.
set -u
. "$(dirname "$0")/common.sh"

# trace LINE...: write the trace for the next commands
trace()
{
	printf '%s\n' "$@" >"$work/trace"
}

# gives PATTERN OPTION...: the table has a match of the pattern
gives()
{
	pattern=$1
	shift
	expect 0 "$pattern" replay "$work/trace" "$@"
}

# wrong PATTERN LINE...: the trace is refused with a line number
wrong()
{
	pattern=$1
	shift
	trace "$@"
	expect 1 "^weir-sim: $work/trace:$pattern\$" replay "$work/trace" -l fixed
	[ "$(wc -l <"$work/out")" = 1 ] || complain "not one sentence: $(cat "$work/out")"
}

# Four overlapping calls, and one long after. Times count from the first.
trace start,rtt 1,4 2,3 3,2 4,0.5 9,2
gives '^# 5 calls in 10.000 s, 2300.000 ms each; at most 4 in flight, as they overlap$' -l fixed
gives '^fixed:limit=2 +2.0 +2 +2 +2 +40.000 +2.000$' -l fixed:limit=2
gives '^fixed:limit=4 +4.0 +4 +4 +4 +0.000 +-$' -l fixed:limit=4
gives '^fixed:limit=1 +1.0 +1 +1 +1 +60.000 +1.000$' -l fixed:limit=1,fixed:limit=2

# The same in any order, in other units, columns and notations, and from standard input.
"$tool" replay "$work/trace" -l fixed:limit=2,aimd:min=1,vegas:windowing=sample >"$work/expected"
# same LINE...
same()
{
	trace "$@"
	"$tool" replay - -l fixed:limit=2,aimd:min=1,vegas:windowing=sample <"$work/trace" \
		>"$work/got"
	diff "$work/expected" "$work/got" || complain "the trace is read differently: $(cat "$work/trace")"
}
same start,rtt 9,2 4,0.5 1,4 3,2 2,3
same 'start_ms,rtt_us' 1000,4000000 2000,3e6 3000,2000000 4000,500000 9000,2000000
same 'rtt_ns,name,end_s' 4000000000,a,5 3000000000,b,5 2000000000,c,5 500000000,d,4.5 2000000000,e,11
same '# a comment' '' 'end, start' 5,1 5,2 '# another' 5,3 4.5,4 11,9
same '"start","who","rtt"' '1,"a, b",4' '2,"c ""d"", e",3' '"3",,2' 4,,0.5 9,,2
same "start	rtt" "1	4" "2	3" "3	2" "4	0.5" "9	2"
same start,rtt 1700000001.000001,4 1700000002.000001,3 1700000003.000001,2 1700000004.000001,0.5 \
	1700000009.000001,2
same start,rtt 2026-01-31T00:00:01Z,4 2026-01-31T01:00:02+01:00,3 '2026-01-31 00:00:03,2' \
	2026-01-30T19:00:04.0-0500,5e-1 2026-01-31T00:00:09.000Z,2

# A recorded number of calls in flight is used as it is.
trace start,rtt,inflight 1,4,7 2,3,1 3,2,1 4,0.5,1 9,2,1
gives '^# 5 calls .* at most 7 in flight$' -l fixed
gives '^fixed:limit=2 .* 20.000 +0.000$' -l fixed:limit=2

# A call that ends when another begins is out of flight before, and its sample is used.
trace start,rtt 0,1 1,1 2,0 2,1
gives '^# 4 calls .* at most 1 in flight, as they overlap$' -l fixed
trace start,rtt,inflight,outcome 0,1,1,dropped 1,1,2,success
gives '^aimd:[^ ]+ .* 50.000 +1.000$' -l aimd:initial=2,min=1,backoff=0.5,windowing=sample

# Outcomes: a drop halves this limit, and a call that is not a sample does not change it.
for word in success=40 ignored=40 dropped=20 timed_out=20 cancelled=40 failed=40; do
	trace start,rtt,inflight,outcome "1,0.1,9,${word%=*}"
	gives "^aimd:[^ ]+ +[0-9.]+ +[0-9]+ +40 +${word#*=} " \
		-l aimd:initial=40,backoff=0.5,min=1,windowing=sample
done
for code in 200=40 304=40 404=40 500=40 502=40 499=40 429=20 503=20 504=20; do
	trace start,rtt,inflight,status "1,0.1,9,${code%=*}"
	gives "^aimd:[^ ]+ +[0-9.]+ +[0-9]+ +40 +${code#*=} " \
		-l aimd:initial=40,backoff=0.5,min=1,windowing=sample
done

# Traces of tests/conformance also work; where calls end in the order of rows, the result is the one
# recorded there.
kept=$source/tests/conformance/traces
expect 0 '^vegas:[^ ]+ .* 60 +60 +1.000 ' replay "$kept/vegas_13_max_clamp.csv" \
	-l vegas:max=60,probe=1000000000,windowing=sample
expect 0 '^# 4500 calls in 9.009 s, .* at most 72 in flight$' replay "$kept/windowed_aimd_02_p99.csv"

# A series: times, counts in each step, and the limits.
trace start,rtt 1,4 2,3 3,2 4,0.5 9,2
"$tool" replay "$work/trace" -l fixed:limit=2,fixed:limit=3 --series - --every 4s >"$work/series"
{
	printf 'time\tcalls\tinflight\trtt_ms\tfixed:limit=2\tfixed:limit=3\n'
	printf '4.000000\t4\t4\t2375\t2\t3\n8.000000\t1\t1\t-\t2\t3\n10.000000\t0\t-\t2000\t2\t3\n'
} | diff - "$work/series" || complain "the series differs"
gives '^fixed ' -l fixed --series "$work/series"
[ -s "$work/series" ] || complain "no series beside the table"

# Errors and their lines.
wrong '1: There is no call, and no line with columns.' ''
wrong '1: There is no call.' start,rtt
wrong '1: Two of the columns start, end and rtt are required.*' start,latency 1,2
wrong '1: Two of the columns start, end and rtt are required.*' start,end,rtt 1,2,1
wrong '1: Two of the columns start, end and rtt are required.*' start_min,rtt 1,2
wrong '1: The column start appears twice.' start,start_ms,rtt 1,2,3
wrong '1: Only one of the columns outcome, status and did_drop may be given.' start,rtt,outcome,status
wrong '3: There is no rtt: the line has fewer fields than the first.' start,rtt 1,2 3
wrong '2: start "x" is not a time.' start,rtt x,2
wrong '2: start "" is not a time.' start,rtt ,2
wrong '2: start "-1" is not a time.' start,rtt -1,2
wrong '2: start "0x10" is not a time.' start,rtt 0x10,2
wrong '2: start "99999999999999999999" is not a time.' start,rtt 99999999999999999999,2
wrong '2: start "80000000000000000000" is not a time.' start_ns,rtt 80000000000000000000,2
wrong '2: start "2026-13-01T00:00:00Z" is not a time.' start,rtt 2026-13-01T00:00:00Z,2
wrong '2: rtt "nan" is not a duration.' start,rtt 1,nan
wrong '2: rtt "1e400" is not a duration.' start,rtt 1,1e400
wrong '2: rtt "2ms" is not a duration.' start,rtt 1,2ms
wrong '3: The call ends before it starts.' start,end 1,2 3,2
wrong '2: The call takes longer than ten years: is the unit right\?' start,rtt 1,999999999
wrong '3: The calls span more than ten years: is the unit right\?' start,rtt 1,1 1700000000,1
wrong '2: inflight "0" is not from 1 .*' start,rtt,inflight 1,2,0
wrong '2: inflight "1.5" is not from 1 .*' start,rtt,inflight 1,2,1.5
wrong '2: inflight "99999999" is not from 1 .*' start,rtt,inflight 1,2,99999999
wrong '2: outcome "ok" is not success, .*' start,rtt,outcome 1,2,ok
wrong '2: status "20" is not an HTTP status.' start,rtt,status 1,2,20
wrong '2: did_drop "2" is neither 0 nor 1.' start,rtt,did_drop 1,2,2
printf 'start,rtt\n1,2\0003\n' >"$work/trace"
expect 1 ':2: The line contains a zero byte' replay "$work/trace"
expect 1 '^weir-sim: /nowhere: No such file' replay /nowhere
expect 1 ': The file cannot be read any further.' replay "$here"
trace start,rtt 1,4 1000,4
expect 1 'more than [0-9]+ lines: raise --every' replay "$work/trace" --series - --every 1us
refused 'A trace is required' replay
refused 'Only one trace' replay a b
refused 'one seed' replay a --seed 1..2
refused 'is not a duration' replay a --every x
refused 'series is required' replay a --every 1s
refused 'no limit "x"' replay a --limit x
refused 'unrecognized option' replay a --scenario healthy
exit "$failed"
