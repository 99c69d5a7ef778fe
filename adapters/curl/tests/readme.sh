#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Usage: readme.sh README FETCH_C WEIR_CURL_FETCH WEIR_HTTPD - checks that the program in the README
# is the one that is built, and runs it.
set -u
readme=$1 source=$2 fetch=$3 httpd=$4
# shellcheck source-path=SCRIPTDIR source=../../../tests/e2e/common.sh
. "$(dirname "$0")/../../../tests/e2e/common.sh"

awk '/^```/ { fence++; next } fence == 1' "$readme" >"$work/fetch.c"
grep -v SPDX "$source" | diff "$work/fetch.c" - >"$work/diff.log" ||
	fail "the README shows another program"
need_programs "$httpd"

start "$httpd" --rows 20000 --limit none
"$fetch" "$url/report?shop=1" "$url/nothing" "$url/report?shop=2" >"$work/said"
[ "$(grep -c ': 200$' "$work/said")" = 2 ] || fail "two answers expected: $(cat "$work/said")"
[ "$(grep -c ': 404$' "$work/said")" = 1 ] || fail "one 404 expected: $(cat "$work/said")"
stop
echo "the program of the README works"
