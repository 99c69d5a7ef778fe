#!/bin/sh
# From a queue to a database that throttles: what the database says it counted, to the unit; and a
# small form of the demo, in which a processor is killed. No record is lost, the dead one's are
# written by the other, and the database has next to nothing to refuse, but to naive retry.
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

# answers STATUS TEXT RECORDS: to these, the database
answers()
{
	status=$(printf "$3" | curl -s -m 10 -D "$work/headers" -o "$work/answer" -w '%{http_code}' \
		--data-binary @- "$url/records?from=test")
	[ "$status $(cat "$work/answer")" = "$1 $2" ] ||
		fail "$status $(cat "$work/answer"), not $1 $2, to $3"
}

# A's cost 10, B's 20. What is there already costs as much.
start "$database" --capacity 30
answers 429 'committed 2' 'A1 one\nA2 two\nB1 three\n'
grep -qi '^Retry-After: 1' "$work/headers" || fail "it does not say when to come again"
answers 200 'committed 1' 'A1 one\n'
for text in 'C1 of no type\n' 'A no number\n' 'A1\n' 'A1 fine\nnot fine\n' 'A1 x\0y\n' '\n'; do
	answers 400 "$([ "$text" != 'A1 x\0y\n' ] || echo no text)" "$text"
done
[ "$(curl -s -m 10 -o /dev/null -w '%{http_code}' "$url/nothing")" = 404 ] || fail "no 404"
[ "$(curl -s -m 10 "$url/count" | tr '\n' ' ')" = 'records 2 duplicates 1 sends 4 refused 1 ' ] ||
	fail "it counts otherwise: $(curl -s -m 10 "$url/count")"
kill -TERM "$server"
wait "$server" || fail "exit code $? after SIGTERM"

refused 'is no option' --records
refused 'no option --nonsense' --nonsense 1
refused 'not two numbers' --records many
refused 'no store' --store none

# field LINE COLUMN: of the table's line that begins so, from the end
field()
{
	awk -v name="$1" -v column="$2" 'index($0, name) == 1 { print $(NF - column) }' \
		"$work/out/ingest.txt"
}

"$source/examples/ingest/demo" --no-build --build "$build" --out "$work/out" --short --store redis \
	--records 400,200 --capacity 2000 --slow 3000 --lease 600 --idle 1000 --events 1 \
	>"$work/demo.log" 2>&1 || fail "the demo ended with $?"
! grep -q '^warning' "$work/demo.log" || fail "something did not end well"

naive='naive retry' shares='both types'
[ "$(field "$naive" 5)" = 400 ] && [ "$(field "$shares" 5)" = 600 ] || fail "records are missing"
for run in "$naive" "$shares"; do
	[ "$(field "$run" 4)" = $(($(field "$run" 5) + $(field "$run" 3) + $(field "$run" 2))) ] ||
		fail "$run: what was sent is not what was admitted and refused"
done
[ "$(field "$naive" 3)" -ge 100 ] || fail "the naive one was not refused: $(field "$naive" 3)"
# On a busy machine, requests that were held up come together.
[ "$(field "$shares" 3)" -le 60 ] || fail "$(field "$shares" 3) refused, and a handful is fine"

# The database's own log: no second has more than there is.
awk -F '\t' 'NR > 1 { units[$1] += $3 } END { for (s in units) if (units[s] > 3000) exit 1 }' \
	"$work/out/mishaps-seconds.tsv" || fail "more was admitted than there is"

# Both together never have more than is shared: whenever one looked while the other's did not change.
awk -F '\t' 'FNR == 1 { file++; next }
	file == 1 { time[++n] = $1; units[n] = $2; next }
	{
		while (i < n && time[i + 1] <= $1)
			i++
		if (i < 1 || i == n || units[i] != units[i + 1])
			next
		if (units[i] + $2 > 2850)
			over = 1
	}
	END { exit over }' "$work/out/mishaps-one.tsv" "$work/out/mishaps-two.tsv" ||
	fail "more is leased than there is"

# What it had in hand a moment before it died, if it was more than can be written in that moment.
had=$(tail -n 1 "$work/out/mishaps-one.tsv" | cut -f 3)
claimed=$(sed -n 's/^\([0-9]*\) records were taken over.*/\1/p' "$work/out/ingest.txt")
[ "$claimed" -gt 0 ] || [ "$had" -lt 1000 ] || fail "nobody has taken over what the dead one had"
echo "naive retry: $(field "$naive" 3) refused; leased shares: $(field "$shares" 3) refused, $claimed" \
	"records of the dead one taken over"
