#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Requests that wait for a permit, or whose refusal is delayed.
# Usage: waiting.sh NGINX MODULE ORIGIN
set -u
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

# Start a request that stays in flight.
hold()
{
	curl -s -m 250 -o /dev/null "$url/main/hang" &
	holder=$!
	wait_for stat_is inflight 1
}

let_go()
{
	kill "$holder"
	wait_for is_idle
}

# All requests that fit into the queue are served, by releases of any worker.
serves_all()
{
	curl -s -m 250 -Z --parallel-immediate --parallel-max 32 -o /dev/null \
		-w '%{http_code}\n' "$url/main/x?ms=10&n=[1-32]" >"$work/codes" 2>/dev/null
	[ "$(grep -c 200 "$work/codes")" = 32 ] || fail "not all were served: $(sort "$work/codes" | uniq -c)"
	wait_for logged '^/main/x 200 WAITED zone=main .* waited=0\.[0-9]*[1-9]'
	wait_for is_idle
	stat_is rejected 0 || fail "a request was refused"
}

# A release in another worker wakes a waiting request at once, not only at its deadline. The kernel
# distributes connections over the workers at random (reuseport).
is_woken_by_other_workers()
{
	local i

	for i in $(seq 12); do
		hold
		curl -s -m 250 -o /dev/null -w '%{http_code}' "$url/long/x" >"$work/code" &
		waiter=$!
		wait_for stat_is waiting 1
		kill "$holder"
		wait "$waiter"
		[ "$(cat "$work/code")" = 200 ] || fail "round $i: $(cat "$work/code")"
		wait_for is_idle
	done
}

expires()
{
	hold
	[ "$(status_of "$url/main/short")" = 503 ] || fail "served without a permit"
	wait_for logged '^/main/short 503 EXPIRED zone=main .* waited=0\.[0-9]*[1-9]'
	stat_is waiting 0 || fail "it waits still"
	let_go
}

# The queue accepts requests up to its size.
is_bounded()
{
	hold
	waiters=''
	for _ in 1 2 3; do
		curl -s -m 250 -o /dev/null "$url/tiny/x" &
		waiters="$waiters $!"
	done
	[ "$(status_of "$url/free")" = 404 ] || fail "waiting requests delay others"
	kill "$holder"
	# shellcheck disable=SC2086
	wait $waiters
	wait_for is_idle
	hold
	for _ in $(seq 32); do
		curl -s -m 250 -o /dev/null "$url/long/x" &
	done
	wait_for stat_is waiting 32
	[ "$(status_of "$url/long/x")" = 503 ] || fail "the queue has no bound"
	let_go
}

# On a busy machine all clients may leave before they wait: then start others.
some_leave()
{
	for _ in 1 2 3 4; do
		curl -s -m 0.2 -o /dev/null "$url/long/x"
	done
	logged '^/long/x 499 WAITING zone=main'
}

# A client that disconnects leaves the queue, both before and while a permit arrives.
may_leave()
{
	local i

	hold
	wait_for some_leave
	wait_for stat_is waiting 0
	let_go
	for i in $(seq 40); do
		curl -s -m 0.0$((i % 10))5 -o /dev/null "$url/main/x?ms=20" &
	done
	wait_for is_idle
	stat_is double_released 0 || fail "a permit was released twice"
}

# Streams of one connection wait separately, and all leave the queue with it.
streams_may_wait()
{
	command -v nghttp >/dev/null || { echo "nghttp is missing: no streams are tried"; return; }
	hold
	nghttp -n -t 60 "$url2/long/a" "$url2/long/b" "$url2/long/c" >/dev/null 2>&1 &
	streams=$!
	wait_for stat_is waiting 3
	kill "$streams"
	wait_for stat_is waiting 0
	wait_for logged '^/long/c 499 WAITING zone=main'
	nghttp -n -t 60 "$url2/long/d" "$url2/main/short/stream" "$url2/long/e" >/dev/null 2>&1 &
	streams=$!
	wait_for logged '^/main/short/stream 503 EXPIRED zone=main'
	let_go
	wait "$streams"
	# A refused stream does not end other streams.
	wait_for logged '^/long/d 200 WAITED zone=main'
	wait_for logged '^/long/e 200 WAITED zone=main'
	stat_is double_released 0 || fail "a permit was released twice"
}

# A waiting request notices when capacity reserved for another partition becomes free by time.
notices_what_lapses()
{
	curl -s -m 250 -Z --parallel-immediate --parallel-max 8 -o /dev/null -w '%{http_code}\n' \
		"$url/parts/x?class=a&ms=50&n=[1-8]" >"$work/codes" 2>/dev/null
	curl -s -m 250 -Z --parallel-immediate --parallel-max 8 -o /dev/null -w '%{http_code}\n' \
		"$url/parts/x?class=b&ms=50&n=[1-8]" >>"$work/codes" 2>/dev/null
	[ "$(grep -c 200 "$work/codes")" = 16 ] || fail "not all were served: $(sort "$work/codes" | uniq -c)"
	wait_for is_idle parts
}

# A delayed refusal, and one whose client disconnects before it.
delays_refusals()
{
	curl -s -m 250 -o /dev/null "$url/late/hang?class=slow" &
	holder=$!
	wait_for stat_is inflight 1 late
	curl -s -m 250 -o /dev/null -w '%{http_code} %{time_total}' "$url/late/x?class=slow" >"$work/code"
	[ "$(cut -d' ' -f1 "$work/code")" = 503 ] || fail "not refused: $(cat "$work/code")"
	[ "$(cut -d' ' -f2 "$work/code" | tr -d .)" -ge 0299000 ] || fail "too soon: $(cat "$work/code")"
	curl -s -m 0.1 -o /dev/null "$url/late/x?class=slow"
	kill "$holder"
	wait_for is_idle late
	wait_for none_is_delayed
}

none_is_delayed()
{
	curl -s -m 100 "$url/weir?format=json" >"$work/page"
	grep -q '"delayed":0' "$work/page" && ! grep -q '"delayed":[^0]' "$work/page"
}

start_origin
second=$("$origin" --port)
url2=http://127.0.0.1:$second
start_nginx "
weir_zone main limit=fixed:limit=1 queue=32 order=adaptive;
weir_zone parts limit=fixed:limit=2 queue=32 partition=a:share=0.5 partition=b:share=0.5;
weir_zone late limit=fixed:limit=1 partition=slow:delay=300ms;
server {
	listen 127.0.0.1:PORT reuseport;
	listen 127.0.0.1:$second http2;
	location /weir { weir_status_page; }
	location /main/ { weir zone=main wait=60s; proxy_pass http://$upstream/; }
	location /main/short { weir zone=main wait=100ms; proxy_pass http://$upstream/; }
	location /long/ { weir zone=main wait=60s; proxy_pass http://$upstream/; }
	location /tiny/ { weir zone=main wait=30s; proxy_pass http://$upstream/; }
	location /parts/ {
		weir zone=parts partition=\$arg_class wait=60s;
		proxy_pass http://$upstream/;
	}
	location /late/ { weir zone=late partition=\$arg_class; proxy_pass http://$upstream/; }
}"
serves_all
is_woken_by_other_workers
expires
is_bounded
may_leave
streams_may_wait
notices_what_lapses
delays_refusals
stop_nginx
echo "waiting requests are served in time, or refused"
