#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A limiter keeps its state over reloads. Under load, neither reloads nor deaths of workers leave
# anything in flight.
# Usage: restarts.sh NGINX MODULE ORIGIN [COUNT]
set -u
count=${4:-20}
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
command -v wrk >/dev/null || skip "there is no wrk"

# http ZONE_PARAMETERS
http()
{
	cat <<-END
	weir_zone main $1;
	server {
		listen 127.0.0.1:PORT backlog=4096;
		location /weir { weir_status_page; }
		location / { weir zone=main; proxy_pass http://$upstream; }
		location /wait { weir zone=main wait=200ms; proxy_pass http://$upstream; }
	}
	END
}

# An old worker shows the old limit until it has exited.
limit_becomes()
{
	wait_for stat_is limit "$1"
}

keeps_what_it_knows()
{
	local admitted

	for _ in 1 2 3; do
		[ "$(status_of "$url/x")" = 200 ] || fail "not served"
	done
	wait_for is_idle
	admitted=$(stat_of admitted)
	[ "$admitted" -ge 3 ] || fail "nothing is counted"
	reload
	stat_is admitted "$admitted" || fail "a reload without a change has lost the state"

	reload "$(http "limit=elastic queue=50")"
	limit_becomes 9
	wait_for stat_is admitted 0
	reload "$(http "limit=elastic queue=60")"
	limit_becomes 9
	reload "$(http "limit=vegas:max=5 queue=60")"
	limit_becomes 5
	reload "$(http "limit=fixed:limit=7 queue=40")"
	limit_becomes 7
	reload "$(http "limit=fixed:limit=7 queue=40")"
	limit_becomes 7
	[ "$(status_of "$url/x")" = 200 ] || fail "not served after reloads"
}

# A slow request is in flight. Retry if it ended before that was seen.
has_old()
{
	curl -s -m 250 -o /dev/null -w '%{http_code}' "$url/x?ms=1500" >"$work/code" &
	old=$!
	while kill -0 "$old" 2>/dev/null; do
		! stat_is inflight 1 || return 0
	done
	return 1
}

# A request with a permit of the old limiter ends with it; the new limiter does not count it.
lets_old_ones_end()
{
	local code

	wait_for has_old
	reload "$(http "limit=fixed:limit=20 queue=40")"
	wait_for stat_is limit 20
	wait "$old"
	code=$(cat "$work/code")
	[ "$code" = 200 ] || fail "an old request got $code"
	wait_for is_idle
}

begin_load()
{
	wrk -t 1 -c 16 -d 600 --timeout 10 "$url/x?ms=5" >"$work/wrk.txt" 2>&1 &
	loads=$!
	wrk -t 1 -c 32 -d 600 --timeout 10 "$url/wait?ms=5" >"$work/wrk-wait.txt" 2>&1 &
	loads="$loads $!"
	pids="$pids $loads"
	wait_for has_load
}

has_load()
{
	[ "$(stat_of inflight)" -gt 0 ] 2>/dev/null
}

end_load()
{
	# shellcheck disable=SC2086
	kill $loads
	# shellcheck disable=SC2086
	wait $loads 2>/dev/null
	wait_for is_idle
}

reloads_under_load()
{
	local i

	begin_load
	for ((i = 0; i < count; i++)); do
		if ((i % 4 == 3)); then
			reload "$(http "limit=fixed:limit=20 queue=$((40 + i))")"
		else
			reload
		fi
	done
	wait_for has_load
	end_load
}

# the workers that serve, without those that are exiting
a_worker()
{
	pgrep -P "$nginx_pid" -f 'worker process$' | sort -R | head -n 1
}

two_workers()
{
	[ "$(pgrep -c -P "$nginx_pid" -f 'worker process$')" = 2 ]
}

kills_under_load()
{
	local i deaths

	wait_for two_workers
	deaths=$(stat_of deaths)
	begin_load
	for ((i = 0; i < count; i++)); do
		wait_for has_load
		kill -9 "$(a_worker)"
		wait_for two_workers
	done
	wait_for has_load
	end_load
	[ "$(stat_of deaths)" -gt "$deaths" ] || fail "no worker died"
	stat_is double_released 0 || fail "a permit was released twice"
	echo "$(($(stat_of deaths) - deaths)) workers and $(stat_of reaped) permits recovered"
}

start_origin --time 1
start_nginx "$(http "limit=fixed:limit=9 queue=40")"
keeps_what_it_knows
lets_old_ones_end
reloads_under_load
no_errors
kills_under_load
stop_nginx
echo "$count reloads and $count deaths under load, and nothing in flight"
