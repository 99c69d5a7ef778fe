#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The adapter for libevent: which requests are served, wait or are refused, and that no permit is
# lost, whatever happens to clients and the server.
# Usage: libevent.sh LIBEVENT_SERVER
set -u
server_program=${1:-}
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
need_load "$server_program"

counts_outcomes()
{
	start "$server_program" 10 "$1" fixed:limit=2
	one_more succeeded / 200
	one_more succeeded '/status?code=302' 302
	one_more ignored '/status?code=404' 404
	one_more ignored '/status?code=500' 500
	one_more failed '/status?code=502' 502
	one_more dropped '/status?code=503' 503
	one_more dropped '/status?code=429' 429
	one_more timed_out '/status?code=504' 504
	one_more timed_out /early 200
	one_more ignored /forgets 200
	[ "$(code -d body "$url/")" = 200 ] || fail "a request with a body was not served"
	admitted=$(number admitted)
	[ "$(code "$url/health")" = 200 ] || fail "a health check was refused"
	is admitted "$admitted" || fail "a health check took a permit"
	[ "$(code "$url/nonsense")" = 500 ] || fail "no 500 for an unknown partition"
	stop
	balance
}

rejects 'wait needs a limiter with a queue .*' 0 20 fixed:limit=1
counts_outcomes 0
counts_outcomes 1000
lets_wait 64 60000
refuses 4 60000
refuses 0 0
gives_up 64 2
loses_no_permit 8 20
forgets_who_left 100 60000
ends_under_load 64 60000
ends_under_load 0 0
echo "the adapter for libevent works"
