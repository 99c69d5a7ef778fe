#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The adapter for libmicrohttpd in one mode of the daemon: which requests are served, wait or are
# refused, and that no permit is lost, whatever happens to clients and the daemon.
# Usage: microhttpd.sh MICROHTTPD_SERVER MODE
set -u
server_program=${1:-} mode=${2:-}
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
need_load "$server_program"

counts_outcomes()
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
	[ "$(code "$url/nonsense")" = 500 ] || fail "no 500 for an unknown partition"
	stop
	balance
	[ "$(at_end handled)" = "$(at_end completed)" ] ||
		fail "not all that was handled was completed"
}

# Permits that arrive as soon as a request waits, or before.
waits_briefly()
{
	start "$server_program" "$1" 64 60000 fixed:limit=1
	load 64 4000 /status
	[ "$served" = 4000 ] || fail "$refused were refused that could wait"
	stop
	balance
}

# A client that begins to send a request, and does not go on: it gets a permit.
begin_slowly()
{
	mkfifo "$work/slow"
	curl -s -m 250 "telnet://127.0.0.1:$port" <"$work/slow" >/dev/null 2>&1 &
	slow=$!
	pids="$pids $slow"
	exec 3>"$work/slow"
	printf 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nx' >&3
}

end_slowly()
{
	kill "$slow" 2>/dev/null
	exec 3>&-
	rm "$work/slow"
}

# Wait until the daemon closes the connection. On a busy machine that may be before the client had a
# permit: then try again.
ends_one()
{
	begin_slowly
	looks=0
	until above ignored 0 || [ $looks = 100 ]; do
		looks=$((looks + 1))
		sleep 0.05
	done
	end_slowly
	[ $looks -lt 100 ]
}

# The daemon's own timeout ends it.
ends_slow_clients()
{
	start "$server_program" "$1" 8 20 fixed:limit=1 1
	wait_for ends_one
	stop
	balance
}

# A wait ends by its deadline alone, without another event.
ends_waits()
{
	start "$server_program" "$1" 8 20 fixed:limit=1
	begin_slowly
	wait_for is 'in flight' 1
	[ "$(code "$url/")" = 503 ] || fail "not refused when its time was up"
	end_slowly
	stop
	balance
}

# among MODE...
among()
{
	case " $* " in
	*" $mode "*) return 0 ;;
	*) return 1 ;;
	esac
}

counts_outcomes "$mode"
lets_wait "$mode" 64 60000
refuses "$mode" 4 60000
gives_up "$mode" 64 2
loses_no_permit "$mode" 8 20
among connection || forgets_who_left "$mode" 100 60000
ends_under_load "$mode" 64 60000
! among epoll || rejects 'wait needs a limiter with a queue .*' epoll 0 20 fixed:limit=1
! among connection epoll || ends_slow_clients "$mode"
! among external epoll || ends_waits "$mode"
! among pool epoll || waits_briefly "$mode"
echo "the adapter for libmicrohttpd works"
