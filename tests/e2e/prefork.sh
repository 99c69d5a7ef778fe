#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The pre-forking server under load, while its workers are killed: only requests on connections to a
# killed worker are lost, the limit holds, and nothing is in flight at the end.
# Usage: prefork.sh WEIR_PREFORK WEIR
set -u
prefork=${1:-} weir=${2:-}
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
need_programs "$prefork" "$weir"
command -v wrk >/dev/null || skip "wrk is missing"
name=/prefork-$$
kills=6

# column N: of the table's line of that name
column()
{
	"$weir" stat "$name" | awk -v n="$1" -v name="$name" '$1 == name { print $n }'
}

nothing_in_flight()
{
	[ "$(column 3)" = 0 ]
}

# goes_on FROM: a hundred more calls than FROM have been admitted
goes_on()
{
	[ "$(column 6)" -gt $(($1 + 100)) ]
}

workers()
{
	"$weir" stat --members "$name" | awk -v parent="$server" '$2 == "pid" && $4 == "alive" && $3 != parent { print $3 }'
}

all_there()
{
	[ "$(workers | wc -l)" = 4 ]
}

# A killed worker is a member until its memory is freed, which can take longer than a hundred calls.
has_a_victim()
{
	victim=$(workers | grep -vxFf "$work/killed" | shuf -n 1)
	[ -n "$victim" ]
}

# Kill a random worker while the server serves; it must go on serving.
kill_one()
{
	wait_for has_a_victim
	echo "$victim" >>"$work/killed"
	kill -9 "$victim" || fail "worker $victim died before it was killed"
	wait_for goes_on "$(column 6)"
}

all_are_buried()
{
	[ "$(grep -c '^worker .* died' "$work/server.log")" = $kills ]
}

# of WHAT: a number in the output of wrk; 0 if it is missing
of()
{
	number=$(sed -n "s/.*$1 \([0-9]*\).*/\1/p" "$work/wrk.log")
	echo "${number:-0}"
}

start "$prefork" --workers 4 --name "$name" --limit fixed:limit=6 --rows 20000
wait_for all_there
[ "$(curl -s -m 250 "$url/report" | grep -c '^product')" = 10 ] || fail "no report of ten products"
[ "$(curl -s -m 250 -o /dev/null -w '%{http_code}' "$url/nothing")" = 404 ] || fail "no 404"

# Without deaths, no request is lost.
wrk -t 2 -c 24 -d 1 --timeout 30 "$url/report" >"$work/wrk.log"
[ "$(of 'Socket errors: connect')" = 0 ] || fail "lost without a death: $(cat "$work/wrk.log")"
wait_for nothing_in_flight

# SIGTERM ends it, and it prints its statistics.
wrk -t 2 -c 24 -d 600 --timeout 30 "$url/report" >"$work/wrk.log" &
load=$!
pids="$pids $load"
wait_for goes_on "$(column 6)"
: >"$work/killed"
i=0
while [ $i -lt $kills ]; do
	kill_one
	i=$((i + 1))
done
kill -INT $load
wait $load
wait_for all_are_buried
wait_for all_there
wait_for nothing_in_flight

dead=$(sed -n 's/^worker .* died, with \([0-9]*\) connections.*/\1/p' "$work/server.log" |
	awk '{ n += $1 } END { print n }')
lost=$(($(of 'read') + $(of 'write')))
[ "$(of 'Socket errors: connect')" = 0 ] || fail "connections were refused"
[ "$(of 'timeout')" = 0 ] || fail "requests were never answered"
# A connection just accepted may not be counted yet, and a request may be lost twice: when the
# connection breaks, and when it is sent again on the broken connection.
[ "$lost" -le $((dead + kills)) ] || fail "$lost lost, but $dead were connected to the dead"
[ "$(of 'Non-2xx or 3xx responses:')" -gt 0 ] || fail "no request was refused"

# The statistics of the limiter, and the maximum that the workers counted.
curl -s -m 250 -o /dev/null -w '%{http_code}' "$url/report?class=batch" | grep -q 200 ||
	fail "a batch call is refused at idle"
wait_for nothing_in_flight
"$weir" stat --json "$name" >"$work/json"
grep -q "\"deaths\": $kills," "$work/json" || fail "not as many deaths as kills: $(cat "$work/json")"
stop
most=$(sed -n 's/.*; at most \([0-9]*\) requests were at work$/\1/p' "$work/server.log")
[ "$most" -ge 1 ] && [ "$most" -le 6 ] || fail "$most at work, and the limit is 6"
[ ! -e "/dev/shm$name" ] || fail "the limiter is left behind"
echo "$kills workers killed, $dead connections with them, $lost requests lost; at most $most at work"
