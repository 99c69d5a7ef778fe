#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# From a queue to a database that throttles: the exact counters of the database, and a short run of
# the demo, in which a processor is killed. No record is lost, the other processor writes the dead
# one's records, and the database refuses almost nothing, except with naive retry.
# Usage: ingest.sh SOURCE_DIR BUILD_DIR WEIR_INGEST_DB
set -u
source=$1 build=$2 database=$3
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
need_programs "$database"
for tool in redis-server redis-cli; do
	command -v "$tool" >/dev/null || skip "$tool is missing"
done

# refused WORDS OPTION...
refused()
{
	words=$1
	shift
	"$source/examples/ingest/demo" --no-build --build "$build" --out "$work/out" "$@" \
		>"$work/said.log" 2>&1 && fail "accepted: $*"
	grep -q "$words" "$work/said.log" || fail "$* was not refused as expected"
}

# answers STATUS TEXT RECORDS: the database's answer to these records
answers()
{
	status=$(printf "$3" | curl -s -m 250 -D "$work/headers" -o "$work/answer" -w '%{http_code}' \
		--data-binary @- "$url/records?from=test")
	[ "$status $(cat "$work/answer")" = "$1 $2" ] ||
		fail "$status $(cat "$work/answer"), not $1 $2, to $3"
}

# A record of type A costs 10, of B 20. A duplicate costs as much.
start "$database" --capacity 30
answers 429 'committed 2' 'A1 one\nA2 two\nB1 three\n'
grep -qi '^Retry-After: 1' "$work/headers" || fail "it does not say when to come again"
answers 200 'committed 1' 'A1 one\n'
for text in 'C1 of no type\n' 'A no number\n' 'A1\n' 'A1 fine\nnot fine\n' 'A1 x\0y\n' '\n'; do
	answers 400 "$([ "$text" != 'A1 x\0y\n' ] || echo no text)" "$text"
done
[ "$(curl -s -m 250 -o /dev/null -w '%{http_code}' "$url/nothing")" = 404 ] || fail "no 404"
[ "$(curl -s -m 250 "$url/count" | tr '\n' ' ')" = 'records 2 duplicates 1 sends 4 refused 1 ' ] ||
	fail "it counts otherwise: $(curl -s -m 250 "$url/count")"
kill -TERM "$server"
wait "$server" || fail "exit code $? after SIGTERM"

refused 'is no option' --records
refused 'no option --nonsense' --nonsense 1
refused 'not two numbers' --records many
refused 'no store' --store none

# field LINE COLUMN: of the table's line that begins with LINE, counted from the end
field()
{
	awk -v name="$1" -v column="$2" 'index($0, name) == 1 { print $(NF - column) }' \
		"$work/out/ingest.txt"
}

naive='naive retry' shares='both types'

# A short run. Its counters add up, however late everything is.
demo()
{
	"$source/examples/ingest/demo" --no-build --build "$build" --out "$work/out" --short \
		--store redis --records 200,300 --capacity 900 --slow 3000 --lease 1200 --idle 1000 \
		--events 1 >"$work/demo.log" 2>&1 || fail "the demo ended with $?"
	! grep -q '^warning' "$work/demo.log" || fail "something did not end well"
	[ "$(field "$naive" 5)" = 200 ] && [ "$(field "$shares" 5)" = 500 ] ||
		fail "records are missing"
	for run in "$naive" "$shares"; do
		[ "$(field "$run" 4)" = $(($(field "$run" 5) + $(field "$run" 3) + $(field "$run" 2))) ] ||
			fail "$run: what was sent is not what was admitted and refused"
	done
	# Each of its first two requests is of 1000 units, and a second has 900.
	[ "$(field "$naive" 3)" -ge 20 ] || fail "the naive one was not refused: $(field "$naive" 3)"

	# The database's own log: no second exceeds its capacity.
	awk -F '\t' 'NR > 1 { units[$1] += $3 } END { for (s in units) if (units[s] > 3000) exit 1 }' \
		"$work/out/mishaps-seconds.tsv" || fail "more was admitted than there is"

	# The other processor writes what the dead one had in hand.
	left=$(cat "$work/out/mishaps-left.txt")
	claimed=$(sed -n 's/^\([0-9]*\) records were taken over.*/\1/p' "$work/out/ingest.txt")
	[ "$claimed" -ge "$left" ] || fail "of $left records of the dead one $claimed were taken over"
}

# Both together never have more than the shared capacity. The number in a line was read between its
# time and the time of the next line. So a number that several lines repeat held from the second of
# them to the last, if no share can change twice between two lines. Prints how many lines of the
# other process lie within such a time, and fails if there are more units than allowed.
compare_leases()
{
	awk -F '\t' 'FNR == 1 { file++; next }
		file == 1 { time[++n] = $1; units[n] = $2; next }
		{ at[++m] = $1; other[m] = $2 }
		END {
			for (j = 1; j < m; j++) {
				while (i < n && time[i + 1] <= at[j])
					i++
				if (i < 2 || time[i] - time[i - 1] > 150 || units[i - 1] != units[i])
					continue
				for (k = i; k < n && time[k] < at[j + 1]; k++)
					if (units[k + 1] != units[k] || time[k + 1] - time[k] > 150)
						break
				if (k > n || time[k] < at[j + 1])
					continue
				compared++
				over += units[i] + other[j] > 2850
			}
			print compared + 0
			exit over > 0
		}' "$work/out/mishaps-one.tsv" "$work/out/mishaps-two.tsv"
}

# On a busy machine, delayed requests arrive together and are refused, and lines are written late.
# Then the run is repeated.
went_well()
{
	demo
	compared=$(compare_leases) || fail "more is leased than there is"
	echo "naive retry: $(field "$naive" 3) refused; leased shares: $(field "$shares" 3) refused," \
		"$claimed records taken over, the dead one had $left; $compared looks at both leases"
	[ "$(field "$shares" 3)" -le 60 ] && [ "$compared" -gt 0 ]
}

for _ in 1 2 3 4 5 6 7 8; do
	! went_well || exit 0
done
fail "too many were refused, each time"
