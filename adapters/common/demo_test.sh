#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Usage: demo_test.sh DEMO BUILD_DIR PROGRAM... - an adapter's demo with short phases: its output is
# complete and consistent. The values depend on the machine and are not checked.
set -u
demo=$1 build=$2
shift 2
# shellcheck source-path=SCRIPTDIR source=../../tests/e2e/common.sh
. "$(dirname "$0")/../../tests/e2e/common.sh"
need_programs "$@"
for tool in h2load gnuplot taskset; do
	command -v "$tool" >/dev/null || skip "$tool is missing"
done
export XDG_CACHE_HOME="$work"

"$demo" --no-build --build "$build" --out "$work/out" --seconds 1,2,1 --limit fixed:limit=2 \
	>"$work/demo.log" 2>&1 || fail "the demo ended with $?"
for run in unlimited fixed; do
	awk -F '\t' 'NR > 1 && ($2 <= 0 || $3 + $4 + $5 > $2 + 0.2) { bad = 1 }
		END { exit bad || NR != 4 }' "$work/out/$run-phases.tsv" ||
		fail "the table of $run does not add up"
	awk -F '\t' 'NR > 1 && NF == 5 { rows++ } END { exit rows < 5 }' "$work/out/$run-server.tsv" ||
		fail "$run shows no limiter"
	grep -q "^$run  *overload " "$work/out/demo.txt" || fail "$run is not in the table"
done
head -c 4 "$work/out/demo.png" | grep -q PNG || fail "there is no picture"
echo "the demo shows what it measured"
