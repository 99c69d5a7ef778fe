#!/bin/sh
# The adapter for libmicrohttpd in every way that a daemon runs: who is served, who waits, who is
# refused, and that no permit is lost, whatever becomes of clients and of the daemon.
# Usage: microhttpd.sh MICROHTTPD_SERVER
set -u
server_program=${1:-}
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
need_load "$server_program"

# statuses NAME: that outcome is counted, of requests that were answered so
one_more()
{
	before=$(number "$1")
	[ "$(code "$url$2")" = "$3" ] || fail "$2: not $3"
	wait_for is "$1" $((before + 1))
}

tells_outcomes()
{
	start "$server_program" "$1" 10 1000 fixed:limit=2
	one_more succeeded / 200
	one_more succeeded '/status?code=302' 302
	one_more ignored '/status?code=404' 404
	one_more ignored '/status?code=500' 500
	one_more failed '/status?code=502' 502
	one_more dropped '/status?code=503' 503
	one_more dropped '/status?code=429' 429
	one_more timed_out '/status?code=504' 504
	one_more timed_out /early 200
	one_more ignored /break 000
	[ "$(code -H 'Connection: close' "$url/status?code=503")" = 503 ] || fail "no 503"
	wait_for is dropped 3
	[ "$(code -d body "$url/")" = 200 ] || fail "a request with a body was not served"
	admitted=$(number admitted)
	[ "$(code "$url/health")" = 200 ] || fail "a health check was refused"
	is admitted "$admitted" || fail "a health check took a permit"
	[ "$(code "$url/nonsense")" = 500 ] || fail "no 500 for a partition that is not there"
	stop
	balance
	[ "$(at_end handled)" = "$(at_end completed)" ] || fail "not all that was handled was completed"
}

lets_wait()
{
	start "$server_program" "$1" 64 60000 fixed:limit=2
	load 40 400 /
	[ "$served" = 400 ] || fail "$refused were refused that could wait"
	is rejected 0 || fail "refusals were counted"
	stop
	balance
}

# More clients than there are permits and places.
refuses()
{
	start "$server_program" "$1" 4 60000 fixed:limit=1
	load 64 640 /
	[ "$served" -gt 0 ] && [ "$refused" -gt 0 ] || fail "$served served, $refused refused"
	stop
	balance
	[ "$(at_end rejected)" = "$refused" ] || fail "clients and limiter count differently"
	[ "$(at_end handled)" -ge "$served" ] || fail "served without being handled"
}

refused_with_advice()
{
	curl -s -m 20 -D "$work/headers" -o /dev/null "$url/"
	grep -q '^HTTP/1.1 503' "$work/headers" && grep -qi '^Retry-After: 1' "$work/headers"
}

# A wait that is over before the permit comes, while others use up all there is.
gives_up()
{
	start "$server_program" "$1" 64 2 fixed:limit=1
	timeout 60 h2load --h1 -c 32 -D 60 "$url/" >/dev/null 2>&1 &
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
	start "$server_program" "$1" 8 20 fixed:limit=2
	come_and_go
	wait_for is 'in flight' 0
	stop
	balance
}

# A client that does not send what it announced: the daemon's own timeout ends it.
ends_slow_clients()
{
	start "$server_program" "$1" 8 20 fixed:limit=2
	{ printf 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nx'; sleep 10; } |
		curl -s -m 10 "telnet://127.0.0.1:$port" >/dev/null 2>&1 &
	slow=$!
	pids="$pids $slow"
	wait_for is 'in flight' 1
	wait_for is ignored 1
	kill "$slow"
	stop
	balance
}

ends_under_load()
{
	start "$server_program" "$1" 64 60000 fixed:limit=1
	timeout 60 h2load --h1 -c 64 -D 60 "$url/" >/dev/null 2>&1 &
	pids="$pids $!"
	wait_for above succeeded 5
	stop
	balance
}

for mode in connection pool select poll epoll external; do
	tells_outcomes $mode
	lets_wait $mode
	refuses $mode
	gives_up $mode
	loses_no_permit $mode
	ends_under_load $mode
done
ends_slow_clients connection
ends_slow_clients epoll
echo "the adapter for libmicrohttpd does what it says"
