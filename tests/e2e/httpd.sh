#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The example server, from outside: which requests are served or refused, and that no permit leaks.
# Usage: httpd.sh WEIR_HTTPD
set -u
httpd=${1:-}
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
need_programs "$httpd"

# parallel COUNT: request COUNT reports, eight at a time; prints their status codes, one per line
parallel()
{
	curl -s --no-progress-meter -m 250 -Z --parallel-immediate --parallel-max 8 -o /dev/null -w '%{http_code}\n' \
		"$url/report?shop=[1-$1]"
}

stat_of()
{
	curl -s -m 250 "$url/stats" | sed -n "s/^$1 //p"
}

nothing_in_flight()
{
	[ "$(stat_of inflight)" = 0 ]
}

has_succeeded_once()
{
	[ "$(stat_of succeeded)" = 1 ]
}

serves()
{
	start "$httpd" --rows 20000 --stats "$work/stats.tsv"
	[ "$(curl -s "$url/report?shop=3" | grep -c '^product .* sold')" = 10 ] ||
		fail "no report of ten products"
	[ "$(curl -s -o /dev/null -w '%{http_code}' "$url/nothing")" = 404 ] || fail "no 404"
	[ "$(curl -s -o /dev/null -w '%{http_code}' -d x "$url/report")" = 405 ] || fail "no 405"
	wait_for nothing_in_flight
	wait_for has_succeeded_once
	wait_for grep -q '^[0-9]' "$work/stats.tsv"
	stop
	awk -F '\t' 'NF != 10 { exit 1 }' "$work/stats.tsv" || fail "ragged statistics"
}

some_are_refused()
{
	parallel 16 >"$work/codes"
	grep -qvE '^(200|503)$' "$work/codes" && fail "odd status: $(sort -u "$work/codes")"
	grep -q 503 "$work/codes" && grep -q 200 "$work/codes"
}

refuses()
{
	start "$httpd" --rows 200000 --limit fixed:limit=1
	wait_for some_are_refused
	wait_for nothing_in_flight
	[ "$(stat_of rejected)" -gt 0 ] || fail "refusals are not counted"

	# Compete for the single permit until a client has got a complete refusal.
	curl -s --no-progress-meter -m 250 -Z --parallel-immediate --parallel-max 8 -o /dev/null \
		"$url/report?shop=[1-1000000]" >/dev/null 2>&1 &
	busy=$!
	pids="$pids $busy"
	wait_for refused_with_advice
	kill "$busy"
	wait_for nothing_in_flight
	stop
}

refused_with_advice()
{
	curl -s -m 250 -D "$work/headers" -o /dev/null "$url/report"
	grep -q '^HTTP/1.1 503' "$work/headers" && grep -qi '^Retry-After: 1' "$work/headers"
}

survives_clients_that_leave()
{
	start "$httpd" --rows 200000 --limit fixed:limit=4
	i=0
	while [ $i -lt 20 ]; do
		curl -s --max-time 0.00$((i % 9 + 1)) -o /dev/null "$url/report"
		i=$((i + 1))
	done
	wait_for nothing_in_flight
	wait_for balances
	stop
}

# A permit is released before the end of its call is counted.
balances()
{
	curl -s -m 100 "$url/stats" >"$work/stats"
	awk '{ n[$1] = $2 } END {
		ended = n["succeeded"] + n["ignored"] + n["dropped"] + n["cancelled"]
		exit n["admitted"] != ended || n["double_released"]
	}' "$work/stats"
}

lets_wait()
{
	start "$httpd" --rows 100000 --limit fixed:limit=1 --queue 100 --wait 60000 "$@"
	[ "$(parallel 32 | grep -c 200)" = 32 ] || fail "not all that could wait were served"
	wait_for nothing_in_flight
	[ "$(stat_of rejected)" = 0 ] || fail "a request was refused"
	[ "$(stat_of abandoned)" = 0 ] || fail "a wait timed out"
	stop
}

ends_under_load()
{
	start "$httpd" --rows 200000 --limit "$@"
	curl -s --no-progress-meter -m 250 -Z --parallel-max 8 -o /dev/null "$url/report?shop=[1-5000]" 2>/dev/null &
	pids="$pids $!"
	wait_for some_admitted
	stop
}

some_admitted()
{
	[ "$(stat_of admitted)" -gt 0 ]
}

# refuses_options [ARGUMENT]...
refuses_options()
{
	"$httpd" "$@" >"$work/server.log" 2>"$work/errors.log"
	code=$?
	[ $code = 2 ] || fail "exit code $code, not 2, for: $*"
	[ "$(wc -l <"$work/errors.log")" = 1 ] || fail "not one sentence for: $*"
}

serves
refuses
survives_clients_that_leave
lets_wait
lets_wait --pool 4
ends_under_load none
ends_under_load vegas:initial=2
ends_under_load fixed:limit=1 --pool 4 --queue 10 --wait 60000
refuses_options --port 70000
refuses_options --rows many
refuses_options --queue -1
refuses_options --pool x
refuses_options --limit nonsense
refuses_options --limit vegas:alpha=nonsense
refuses_options --limit fixed:limit=0
refuses_options --limit vegas:nonsense=1
refuses_options --nonsense
refuses_options nonsense
echo "the example server works"
