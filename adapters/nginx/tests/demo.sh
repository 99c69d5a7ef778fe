#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The demo of the module with short phases: the server behind nginx is overloaded, the limiter is
# recorded, nothing stays in flight, and the figure exists. Values that depend on the machine are not
# checked.
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

# demo OPTION...: a short run without a limiter, and one with a limit of 2.
demo()
{
	rm -rf "$work/out"
	"$source/adapters/nginx/demo" --no-build --build "$(realpath --relative-to=. "$build")" \
		--out "$work/out" --seconds 1,2,1 --limit fixed:limit=2 "$@" >"$work/demo.log" 2>&1 ||
		fail "the demo ended with $?"
}

# adds_up RUN: each request of a phase is in time, late, refused or given up.
adds_up()
{
	grep -q "^$1  *overload " "$work/out/demo.txt" || fail "$1 is not in the table"
	awk -F '\t' 'NR > 1 && ($2 <= 0 || $3 + $4 + $5 > $2 + 0.2) { bad = 1 }
		END { exit bad || NR != 4 }' "$work/out/$1-phases.tsv" || fail "the table of $1 does not add up"
	awk -F '\t' 'NR > 1 && NF == 5 { rows++ } END { exit rows < 2 }' "$work/out/$1-server.tsv" ||
		fail "$1 shows no limiter"
	grep -q 'in flight 0$' "$work/out/raw/$1-server.txt" || fail "permits are in use at the end"
}

# refuses RUN PHASE: some requests of that phase were refused.
refuses()
{
	awk -F '\t' -v phase="$2" '$1 == phase { refused = $4 } END { exit refused <= 0 }' \
		"$work/out/$1-phases.tsv"
}

for server in places sqlite; do
	demo --server "$server" --rows 150000
	adds_up unlimited
	adds_up fixed
	awk -F '\t' 'NR > 1 && $2 > 2 { exit 1 }' "$work/out/fixed-server.tsv" || fail "the limit is wrong"
	! refuses unlimited overload || fail "requests were refused without a limiter"
	head -c 4 "$work/out/demo.png" | grep -q PNG || fail "there is no picture"
	# What SQLite can do is measured, and a busy machine can do more a moment later. With places
	# it is known: 300 requests per second, for two slots of 40 ms and a queue of 8.
	[ "$server" = sqlite ] || refuses fixed overload || fail "no request was refused"
done
echo "the demo shows what it measured"
