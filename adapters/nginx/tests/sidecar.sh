#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sidecar.conf, with other ports and folders, in front of a server that can process 4 requests at
# once: it queues or refuses what is above its limit. How near the server's capacity that is depends on
# what else the machine does.
# Usage: sidecar.sh NGINX MODULE ORIGIN
set -u
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
command -v wrk >/dev/null || skip "there is no wrk"
conf=$(dirname "$0")/../sidecar.conf

# The file with other ports and folders, and the tester's limit of open files.
configure()
{
	sed -e "s|modules/ngx_http_weir_module.so|$module|" -e "s|/run/nginx-weir.pid|$work/nginx.pid|" \
		-e "s|/var/log/nginx/weir-|$work/|" -e "s|127.0.0.1:8080|$upstream|" \
		-e "s|listen 8000|listen 127.0.0.1:$front|" -e "s|127.0.0.1:8001|127.0.0.1:$port|" \
		-e 's|buffer=64k flush=1s||' -e /worker_rlimit/d -e "s|^events|${user:-}\nevents|" \
		-e "s|^http {|&\n$(for dir in client_body proxy fastcgi uwsgi scgi; do
			printf '%s_temp_path %s/%s;' "$dir" "$work" "$dir"
		done)|" "$conf" >"$work/nginx.conf"
	grep -c 'CHANGE' "$work/nginx.conf" >"$work/marks"
}

start_origin --capacity 4 --time 5
front=$("$origin" --port)
start_nginx ''
[ "$(cat "$work/marks")" = 3 ] || fail "three lines to change expected"
app=http://127.0.0.1:$front
[ "$(curl -s -m 250 "$app/x")" = ok ] || fail "not served"

# A limit that has risen above the number of callers, as while the machine has much else to do, is not
# reached any more: then there have to be more of them.
callers=0 loads=''
overload()
{
	limit=$(stat_of limit app)
	[ "${limit:-0}" -ge "$callers" ] && [ "$callers" -lt 640 ] || return
	wrk -t 1 -c 64 -d 600 --timeout 10 "$app/x" >>"$work/wrk.txt" 2>&1 &
	loads="$loads $!"
	pids="$pids $!"
	callers=$((callers + 64))
}

# is_logged PATTERN: an extended regular expression
is_logged()
{
	overload
	grep -qE "$1" "$work/access.log"
}
wait_for is_logged '" 503 .*weir=(EXPIRED|REJECTED)'
wait_for is_logged '" 200 .*weir=WAITED limit=[0-9]+ inflight=[0-9]+ waited=0\.[0-9]+ rtt=0\.'
[ "$(status_of "$app/health")" = 200 ] || fail "the health check is refused"
# shellcheck disable=SC2086
kill $loads
# shellcheck disable=SC2086
wait $loads 2>/dev/null
wait_for is_idle app
grep -q 'weir=BYPASSED' "$work/access.log" || fail "the health check is not in the log"

# A websocket through it.
exec 3<>"/dev/tcp/127.0.0.1/$front"
printf 'GET /upgrade HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n' >&3
read -r -t 30 line <&3
[[ $line == *" 101 "* ]] || fail "no websocket: $line"
stat_is detached 1 app || fail "the websocket counts for the limit"
exec 3>&-
wait_for is_idle app
stop_nginx
echo "the sidecar queues and refuses what a server with 4 slots cannot serve"
