#!/bin/bash
# Requests that wait for a permit, or to be told that there is none.
# Usage: waiting.sh NGINX MODULE ORIGIN
set -u
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

# A request that does not end is in flight.
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

# All that can wait are served, whichever worker's release makes room.
serves_all()
{
	curl -s -m 250 -Z --parallel-immediate --parallel-max 32 -o /dev/null \
		-w '%{http_code}\n' "$url/main/x?ms=10&n=[1-32]" >"$work/codes" 2>/dev/null
	[ "$(grep -c 200 "$work/codes")" = 32 ] || fail "not all were served: $(sort "$work/codes" | uniq -c)"
	wait_for logged '^/main/x 200 WAITED zone=main .* waited=0\.[0-9]*[1-9]'
	wait_for is_idle
	stat_is rejected 0 || fail "somebody was refused"
}

# A permit of another worker's release reaches the waiter, and not only after its time. The kernel
# spreads connections over the workers by chance (reuseport).
is_told_by_others()
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

# So many fit into the queue, and no more.
has_an_end()
{
	hold
	waiters=''
	for _ in 1 2 3; do
		curl -s -m 250 -o /dev/null "$url/tiny/x" &
		waiters="$waiters $!"
	done
	[ "$(status_of "$url/free")" = 404 ] || fail "waiters hold up the others"
	kill "$holder"
	# shellcheck disable=SC2086
	wait $waiters
	wait_for is_idle
	hold
	for _ in $(seq 32); do
		curl -s -m 250 -o /dev/null "$url/long/x" &
	done
	wait_for stat_is waiting 32
	[ "$(status_of "$url/long/x")" = 503 ] || fail "the queue has no end"
	let_go
}

# On a busy machine they may all leave before they wait: then others come.
some_leave()
{
	for _ in 1 2 3 4; do
		curl -s -m 0.2 -o /dev/null "$url/long/x"
	done
	logged '^/long/x 499 WAITING zone=main'
}

# Who leaves the queue is forgotten: before a permit comes, and as it comes.
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
	stat_is double_released 0 || fail "a permit was given back twice"
}

# Streams of one connection wait each by itself, and all are forgotten with it.
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
	# A refused stream takes no others with it.
	wait_for logged '^/long/d 200 WAITED zone=main'
	wait_for logged '^/long/e 200 WAITED zone=main'
	stat_is double_released 0 || fail "a permit was given back twice"
}

# A partition may wait for its share although what is kept for others lapses without a release.
notices_what_lapses()
{
	curl -s -m 250 -Z --parallel-immediate --parallel-max 8 -o /dev/null -w '%{http_code}\n' \
		"$url/parts/x?class=a&ms=50&n=[1-8]" >"$work/codes" 2>/dev/null
	curl -s -m 250 -Z --parallel-immediate --parallel-max 8 -o /dev/null -w '%{http_code}\n' \
		"$url/parts/x?class=b&ms=50&n=[1-8]" >>"$work/codes" 2>/dev/null
	[ "$(grep -c 200 "$work/codes")" = 16 ] || fail "not all were served: $(sort "$work/codes" | uniq -c)"
	wait_for is_idle parts
}

# A refusal that is held up, and one whose client does not stay for it.
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
is_told_by_others
expires
has_an_end
may_leave
streams_may_wait
notices_what_lapses
delays_refusals
stop_nginx
echo "who waits is served in time, or told"
