#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The event loops of the examples: more clients than there is room for, clients that disconnect
# while they wait or are served, and a shutdown under load. No permit is lost.
# Usage: loops.sh EXAMPLE
set -u
example=${1:-}
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
need_programs "$example"
command -v h2load >/dev/null || skip "h2load is missing"

# load CLIENTS REQUESTS: sets served and refused, and fails if a request got no answer
load()
{
	rm -f "$work/load.tsv"
	timeout 120 h2load --h1 -c "$1" -n "$2" --log-file="$work/load.tsv" "$url/" >"$work/load.out"
	served=$(awk '$2 == 200' "$work/load.tsv" | wc -l)
	refused=$(awk '$2 == 503' "$work/load.tsv" | wc -l)
	[ $((served + refused)) = "$2" ] || fail "of $2, $served were served and $refused refused"
}

start "$example"
[ "$(curl -s -m 250 "$url/")" = "done" ] || fail "it does not answer"
load 8 80
[ "$served" -gt 0 ] || fail "no request was served"
# A client that gets less of the machine than the server does not overload it.
rounds=0
until load 400 1600 && [ "$refused" -gt 0 ]; do
	rounds=$((rounds + 1))
	[ $rounds -lt 100 ] || fail "$served served, and none was refused"
done
[ "$served" -gt 0 ] || fail "$refused were refused, and none was served"

timeout 60 h2load --h1 -c 200 -D 60 "$url/" >/dev/null 2>&1 &
pids="$pids $!"
i=0
while [ $i -lt 30 ]; do
	curl -s --max-time 0.0$((i % 3))$((i % 9 + 1)) -o /dev/null "$url/"
	i=$((i + 1))
done
stop
echo "the loop works"
