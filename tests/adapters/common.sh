# SPDX-License-Identifier: BSD-2-Clause
# Shared functions of the adapters' tests, on top of tests/e2e/common.sh. Their servers print the
# statistics of the limiter in /stats, and when they end.
# shellcheck shell=sh disable=SC2154
# shellcheck source=../e2e/common.sh
. "$(dirname "$0")/../e2e/common.sh"

need_load()
{
	[ -x "$1" ] || skip "the adapter is not built"
	for tool in curl h2load; do
		command -v "$tool" >/dev/null || skip "$tool is missing"
	done
}

# number NAME: from the server's statistics
number()
{
	curl -s -m 100 "$url/stats" | sed -n "s/^$1 //p"
}

# at_end NAME: from the statistics printed at the end
at_end()
{
	sed -n "s/^$1 //p" "$work/server.log"
}

# code [CURL_OPTION]... URL
code()
{
	curl -s -m 100 -o /dev/null -w '%{http_code}' "$@"
}

# is NAME VALUE
is()
{
	[ "$(number "$1")" = "$2" ]
}

# above NAME VALUE
above()
{
	value=$(number "$1")
	[ "${value:-0}" -gt "$2" ]
}

# load CLIENTS REQUESTS PATH: sets served and refused, and fails if a request got no answer
load()
{
	rm -f "$work/load.tsv"
	timeout 250 h2load --h1 -T 200s -c "$1" -n "$2" --log-file="$work/load.tsv" "$url$3" \
		>"$work/load.out" 2>&1
	served=$(awk '$2 == 200' "$work/load.tsv" | wc -l)
	refused=$(awk '$2 == 503' "$work/load.tsv" | wc -l)
	[ $((served + refused)) = "$2" ] ||
		fail "of $2 requests, $served served and $refused refused"
}

# Clients that disconnect, at all stages of a request.
come_and_go()
{
	i=0
	while [ $i -lt 30 ]; do
		curl -s --max-time 0.0$((i % 3))$((i % 9 + 1)) -o /dev/null "$url/" &
		i=$((i + 1))
		[ $((i % 10)) -ne 0 ] || sleep 0.05
	done
}

# The counters at the end: each admitted request has one outcome.
balance()
{
	awk '{ n[$1] = $2 } END {
		ended = n["succeeded"] + n["ignored"] + n["dropped"] + n["timed_out"] + n["cancelled"]
		exit n["admitted"] != ended + n["failed"] || n["double_released"] || n["waiting"]
	}' "$work/server.log" ||
		fail "the counters do not add up: $(tr '\n' ' ' <"$work/server.log")"
}

# one_more OUTCOME PATH STATUS: the request gets that status, and counts as that outcome
one_more()
{
	before=$(number "$1")
	[ "$(code "$url$2")" = "$3" ] || fail "$2: not $3"
	wait_for is "$1" $((before + 1))
}

# The functions below take the arguments of $server_program, except for the limit.

# The queue has room for all requests.
lets_wait()
{
	start "$server_program" "$@" fixed:limit=2
	load 40 200 /
	[ "$served" = 200 ] || fail "$refused were refused that could wait"
	is rejected 0 || fail "refusals were counted"
	stop
	balance
}

# rejects SENTENCE [ARGUMENT]...: the server does not start, and prints that sentence
rejects()
{
	sentence=$1
	shift
	! timeout 100 "$server_program" "$@" >"$work/server.log" 2>"$work/errors.log" ||
		fail "it starts with $*"
	grep -q "^$sentence\$" "$work/errors.log" || fail "it does not print: $sentence"
}

# More clients than permits and room in the queue.
refuses()
{
	start "$server_program" "$@" fixed:limit=1
	load 64 640 /
	[ "$served" -gt 0 ] && [ "$refused" -gt 0 ] || fail "$served served, $refused refused"
	stop
	balance
	[ "$(at_end rejected)" = "$refused" ] || fail "clients and limiter count differently"
}

refused_with_advice()
{
	curl -s -m 100 -D "$work/headers" -o /dev/null "$url/"
	grep -q '^HTTP/1.1 503' "$work/headers" && grep -qi '^Retry-After: 1' "$work/headers"
}

# Waits that end before a permit arrives, while other requests use all permits.
gives_up()
{
	start "$server_program" "$@" fixed:limit=1
	timeout 250 h2load --h1 -c 32 -D 250 "$url/" >/dev/null 2>&1 &
	busy=$!
	pids="$pids $busy"
	wait_for above abandoned 5
	wait_for refused_with_advice
	kill "$busy"
	stop
	balance
}

loses_no_permit()
{
	start "$server_program" "$@" fixed:limit=2
	come_and_go
	wait_for is 'in flight' 0
	stop
	balance
}

ends_under_load()
{
	start "$server_program" "$@" fixed:limit=1
	timeout 250 h2load --h1 -c 64 -D 250 "$url/" >/dev/null 2>&1 &
	pids="$pids $!"
	wait_for above succeeded 5
	stop
	balance
}

# On a busy machine all clients may leave before they wait: then start others.
some_left()
{
	come_and_go
	above cancelled 0
}

# A client that left while it waited is not served: its permit passes on at once.
forgets_who_left()
{
	start "$server_program" "$@" fixed:limit=1
	timeout 250 h2load --h1 -c 16 -D 250 "$url/" >/dev/null 2>&1 &
	busy=$!
	pids="$pids $busy"
	wait_for above waiting 10
	wait_for some_left
	kill "$busy"
	wait_for is 'in flight' 0
	stop
	balance
}
