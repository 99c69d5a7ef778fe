#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The demo, from its options to its figure, with short phases: its output is complete and
# consistent. The values depend on the machine and are not checked.
# Usage: demo.sh SOURCE_DIR BUILD_DIR WEIR_HTTPD
set -u
source=$1 build=$2 httpd=$3
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
need_programs "$httpd"
for tool in h2load gnuplot xmllint taskset; do
	command -v "$tool" >/dev/null || skip "$tool is missing"
done
export XDG_CACHE_HOME="$work"

# refused WORDS OPTION...
refused()
{
	words=$1
	shift
	"$source/scripts/demo" --no-build --build "$build" --out "$work/out" "$@" >"$work/said.log" 2>&1 &&
		fail "accepted: $*"
	grep -q "$words" "$work/said.log" || fail "$* was not refused as expected"
}

# Each request of a phase is in time, late, refused or given up; the picture holds both limits.
adds_up()
{
	awk -F '\t' 'NR > 1 && ($2 <= 0 || $3 + $4 + $5 > $2 + 0.2) { bad = 1 }
		END { exit bad || NR != 4 }' "$work/out/$1-phases.tsv" || fail "the table of $1 does not add up"
	awk -F '\t' 'NR > 1 && NF == 5 { rows++ } END { exit rows < 5 }' "$work/out/$1-server.tsv" ||
		fail "$1 shows no limiter"
	grep -q "^$1  *overload " "$work/out/demo.txt" || fail "$1 is not in the table"
}

refused 'is no option' --limit
refused 'no option --nonsense' --nonsense 1
refused 'no whole number' --queue many
refused 'no server' --server none
refused 'not three lengths' --seconds 1,2
refused 'is no limit' --limit ../elastic
refused 'did not start' --limit nonsense
"$source/scripts/demo" --help | grep -q -- '--queue N' || fail "the help does not say all"

"$source/scripts/demo" --no-build --build "$build" --out "$work/out" --seconds 1,1,1 --rows 150000 \
	--limit fixed:limit=2 --limit fixed:limit=3 >"$work/demo.log" 2>&1 || fail "the demo ended with $?"
for run in unlimited fixed fixed-2; do
	adds_up "$run"
done
[ "$(grep -c 'of capacity in time, p99 [0-9.]* times' "$work/out/demo.txt")" = 3 ] ||
	fail "three results expected"
xmllint --noout "$work/out/demo.svg" || fail "the picture is not well formed"
grep -q '>fixed-2<' "$work/out/demo.svg" || fail "the picture does not show all limits"
head -c 4 "$work/out/demo.png" | grep -q PNG || fail "there is no picture"
echo "the demo shows what it measured"
