#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The demo of the module with short phases: the server behind nginx is overloaded, the limiter is
# recorded, nothing stays in flight, and the figure exists. The values depend on the machine and are
# not checked.
# Usage: demo.sh NGINX MODULE HTTPD SOURCE_DIR BUILD_DIR
set -u
nginx=$1 module=$2 httpd=$3 source=$4 build=$5
# shellcheck source-path=SCRIPTDIR source=../../../tests/e2e/common.sh
. "$(dirname "$0")/../../../tests/e2e/common.sh"
for program in "$nginx" "$module" "$httpd"; do
	[ -r "$program" ] || skip "$program is missing"
done
for tool in h2load gnuplot taskset; do
	command -v "$tool" >/dev/null || skip "$tool is missing"
done
export XDG_CACHE_HOME="$work"

cd "$source" || exit 1
"$source/adapters/nginx/demo" --no-build --build "$(realpath --relative-to=. "$build")" \
	--out "$work/out" --seconds 1,2,1 --rows 150000 --limit fixed:limit=2 >"$work/demo.log" 2>&1 ||
	fail "the demo ended with $?"
for run in unlimited fixed; do
	grep -q "^$run  *overload " "$work/out/demo.txt" || fail "$run is not in the table"
	awk -F '\t' 'NR > 1 && NF == 5 { rows++ } END { exit rows < 5 }' \
		"$work/out/$run-server.tsv" || fail "$run shows no limiter"
	grep -q 'in flight 0$' "$work/out/raw/$run-server.txt" || fail "permits are in use at the end"
done
awk -F '\t' 'NR > 1 && $2 > 2 { exit 1 }' "$work/out/fixed-server.tsv" || fail "the limit is wrong"
awk -F '\t' 'NR > 1 && $5 != "-" && $1 == "overload" && $4 <= 0 { exit 1 }' \
	"$work/out/fixed-phases.tsv" || fail "no request was refused"
head -c 4 "$work/out/demo.png" | grep -q PNG || fail "there is no picture"
echo "the demo shows what it measured"
