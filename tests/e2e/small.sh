#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The two small examples: an inbound handler, and outbound calls to it and to a closed port.
# Usage: small.sh EXAMPLE_HANDLER EXAMPLE_OUTBOUND
set -u
handler=${1:-} outbound=${2:-}
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
need_programs "$handler" "$outbound"

# The handler serves until its input ends. This process keeps the pipe open.
mkfifo "$work/input"
sleep 600 >"$work/input" &
holder=$!
pids="$pids $holder"
# shellcheck disable=SC2016
start sh -c 'exec "$1" <"$2"' sh "$handler" "$work/input"

[ "$(curl -s -m 250 "$url/")" = "done" ] || fail "the handler does not answer"
"$outbound" "$port" 5 >"$work/outbound.log" || fail "outbound calls failed"
[ "$(grep -c '^answered$' "$work/outbound.log")" = 5 ] || fail "five answers expected"
grep -q '^in flight 0$' "$work/outbound.log" || fail "an outbound call leaked"

kill "$holder"
wait "$server" || fail "the handler ended with $?"
grep -q '^in flight 0$' "$work/server.log" || fail "the handler leaked"

# The port is closed now.
"$outbound" "$port" 50 >"$work/outbound.log" || fail "refused calls are no failure"
grep -q '^Connection refused$' "$work/outbound.log" || fail "a refusal was expected"
grep -q '^in flight 0$' "$work/outbound.log" || fail "a refused call leaked"
"$outbound" >/dev/null 2>&1 && fail "a call to nowhere succeeded"
echo "the small examples work"
