#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Under overload, requests of low priority are refused far more often than those of high priority.
# Usage: priorities.sh NGINX MODULE ORIGIN
set -u
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

# asks CLIENTS PATH: send requests forever, each client as soon as it has its answer
asks()
{
	curl -s -Z --parallel-immediate --parallel-max "$1" -o /dev/null \
		"$url$2?ms=20&n=[1-10000000]" >/dev/null 2>&1 &
	clients="$clients $!"
	pids="$pids $!"
	disown
}

above()
{
	[ "$(stat_of "$1")" -gt "$2" ]
}

# answers PATH CODE: their number in the log, from line $from on
answers()
{
	tail -n "+$from" "$work/access.log" | grep -c "^$1 $2 "
}

# Enough of both are refused, and at least three times as many of low priority.
priority_matters()
{
	high=$(answers /high '[0-9]*') high_refused=$(answers /high 503)
	low=$(answers /low '[0-9]*') low_refused=$(answers /low 503)
	[ "$high" -ge 150 ] && [ "$low" -ge 150 ] &&
		[ $((high_refused * low * 3)) -lt $((low_refused * high)) ]
}

clients=''
start_origin
start_nginx "
weir_zone main limit=fixed:limit=16 shed=on;
map \$uri \$priority {
	default 0;
	/high   10;
	/low    -10;
}
server {
	listen 127.0.0.1:PORT;
	location /weir { weir_status_page; }
	location / { weir zone=main priority=\$priority; proxy_pass http://$upstream; }
}"
[ "$(status_of "$url/middle")" = 200 ] || fail "not served while there is room"
asks 3 /high
asks 29 /low
wait_for above shed 100
from=$(($(wc -l <"$work/access.log") + 1))
wait_for priority_matters
# shellcheck disable=SC2086
kill $clients
wait_for is_idle
echo "refused: $high_refused of $high with high priority, $low_refused of $low with low"
[ "$(answers /low 200)" -gt 0 ] || fail "those of low priority starve"
stop_nginx
echo "low priorities are refused first"
