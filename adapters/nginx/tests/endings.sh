#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# However a request ends, its permit is released with the right outcome.
# Usage: endings.sh NGINX MODULE ORIGIN
set -u
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

# counts NAME N COMMAND...: the command adds N of that outcome, and leaves nothing in flight
counts()
{
	local name=$1 more=$2 before

	before=$(stat_of "$name")
	shift 2
	"$@"
	wait_for is_idle
	# The permit is released before the end of its call is counted.
	wait_for stat_is "$name" $((before + more))
}

# answers STATUS PATH
answers()
{
	local got

	got=$(status_of "$url$2")
	[ "$got" = "$1" ] || fail "$2: $got, not $1"
}

# Clients that disconnect, some before nginx has accepted them: the counters still add up.
hang_up()
{
	local before

	before=$(stat_of cancelled)
	wait_for some_hang_up "$before"
	wait_for is_idle
	wait_for balances
}

# some_hang_up CANCELLED: repeat until more than that are counted
some_hang_up()
{
	for i in $(seq 20); do
		curl -s -m 0.$((i % 3))5 -o /dev/null "$url/patient/hang" &
	done
	[ "$(stat_of cancelled)" -gt "$1" ]
}

# Each admitted request has ended with one outcome.
balances()
{
	local name sum=0

	for name in succeeded ignored dropped timed_out cancelled failed; do
		sum=$((sum + $(stat_of $name)))
	done
	stat_is admitted "$sum"
}

end_by_outcome()
{
	counts succeeded 1 answers 200 /main/x
	counts ignored 1 answers 404 /main/status/404
	counts failed 1 answers 500 /main/status/500
	counts dropped 1 answers 503 /main/status/503
	counts dropped 1 answers 429 /main/status/429
	counts timed_out 1 answers 504 /main/hang
	counts failed 1 answers 502 /main/close
	counts failed 1 curl -s -o /dev/null "$url/main/cut"
	counts dropped 1 answers 404 /own/status/404
	counts ignored 1 answers 503 /own/status/503
	counts cancelled 1 answers 500 /own/status/500
	counts ignored 1 answers 413 /main/large
	wait_for logged '^/main/hang 504 PASSED .* rtt=[0-9.]*$'
}

end_with_slow_client()
{
	counts cancelled 1 curl -s -m 1 --limit-rate 100k -o /dev/null "$url/main/big"
}

# The permit is held for the upstream, not for the slow client.
release_with_upstream()
{
	curl -s -m 250 --limit-rate 100k -o /dev/null "$url/upstream/big" &
	slow=$!
	wait_for stat_is succeeded 1 upstream
	is_idle upstream || fail "the permit is not released"
	kill -0 "$slow" 2>/dev/null || fail "the client was too fast for this test"
	kill "$slow"
	# A request that reaches no upstream is not a sample.
	[ "$(status_of "$url/upstream/static")" = 200 ] || fail "not served"
	wait_for stat_is ignored 1 upstream
	[ "$(status_of "$url/upstream/close")" = 502 ] || fail "not refused by the upstream"
	wait_for stat_is failed 1 upstream
	wait_for is_idle upstream
}

# talk PATH: a connection that is upgraded, and stays, as file descriptor 3
talk()
{
	exec 3<>"/dev/tcp/127.0.0.1/$port"
	printf 'GET %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n' "$1" >&3
	read -r -t 30 line <&3
	[[ $line == *" 101 "* ]] || fail "$1 is not upgraded: $line"
	while read -r -t 30 line <&3 && [ "$line" != $'\r' ]; do
		:
	done
}

detach_upgraded()
{
	local limit

	limit=$(stat_of limit detach)
	talk /detach/upgrade
	echo 'are you there' >&3
	read -r -t 30 line <&3
	[ "$line" = 'are you there' ] || fail "no echo: $line"
	stat_is detached 1 detach || fail "the upgraded connection is not detached"
	stat_is inflight 1 detach || fail "it holds no permit"
	stat_is limit $((limit + 1)) detach || fail "it reduces the limit for others"
	exec 3>&-
	wait_for is_idle detach
	wait_for logged '^/detach/upgrade 101 DETACHED zone=detach'
	talk /attached/upgrade
	stat_is detached 1 detach || fail "detached, where it is off"
	exec 3>&-
	wait_for is_idle detach
}

detach_long()
{
	curl -s -m 250 -o /dev/null "$url/detach/hang" &
	long=$!
	wait_for stat_is detached 2 detach
	kill "$long"
	wait_for is_idle detach
	[ "$(status_of "$url/detach/short/x")" = 200 ] || fail "not served"
	stat_is detached 2 detach || fail "a short one is detached"
	[ "$(status_of "$url/stream/x?ms=1")" = 200 ] || fail "not served"
	stat_is detached 3 detach || fail "not detached by its variable"
	wait_for is_idle detach
}

lose_upstream()
{
	kill -9 "$origin_pid"
	counts failed 1 answers 502 /main/x
}

start_origin
mkdir -p "$work/html/upstream"
echo static >"$work/html/upstream/static"
start_nginx "
weir_zone main limit=fixed:limit=50;
weir_zone upstream limit=fixed:limit=50;
weir_zone detach limit=elastic:initial=10,min=10;
upstream origin { server $upstream; }
server {
	listen 127.0.0.1:PORT;
	root $work/html;
	client_max_body_size 10;
	location /weir { weir_status_page; }
	location /main/ { weir zone=main; proxy_pass http://origin/; }
	location /main/hang { weir zone=main; proxy_read_timeout 300ms; proxy_pass http://origin/hang; }
	location /main/large { weir zone=main; error_page 404 =413 /large; }
	location /large { return 413; }
	location /patient/ { weir zone=main; proxy_read_timeout 250s; proxy_pass http://origin/; }
	location /own/ {
		weir zone=main;
		weir_outcome 404 dropped;
		weir_outcome 503 504 ignored;
		weir_outcome 500-502 cancelled;
		proxy_pass http://origin/;
	}
	location /upstream/ { weir zone=upstream; weir_rtt upstream; proxy_pass http://origin/; }
	location /upstream/static { weir zone=upstream; weir_rtt upstream; }
	location /detach/ {
		weir zone=detach;
		weir_detach upgraded after=200ms;
		proxy_http_version 1.1;
		proxy_set_header Connection upgrade;
		proxy_set_header Upgrade websocket;
		proxy_read_timeout 250s;
		proxy_pass http://origin/;
	}
	location /detach/short/ { weir zone=detach; weir_detach after=60s; proxy_pass http://origin/; }
	location /attached/ {
		weir zone=detach;
		weir_detach off;
		proxy_http_version 1.1;
		proxy_set_header Connection upgrade;
		proxy_set_header Upgrade websocket;
		proxy_pass http://origin/;
	}
	location /stream/ { weir zone=detach; weir_detach if=\$upstream_status; proxy_pass http://origin/; }
}"
end_by_outcome
end_with_slow_client
hang_up
release_with_upstream
detach_upgraded
detach_long
lose_upstream
stop_nginx
echo "after each kind of end, nothing stays in flight"
