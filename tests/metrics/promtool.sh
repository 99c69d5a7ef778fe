#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# promtool.sh WEIR_PRINT_METRICS - both formats, parsed by Prometheus's own tools.
set -u

print=$1
if ! command -v promtool >/dev/null; then
	echo "SKIPPED: promtool, of Debian's prometheus, is missing"
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail()
{
	printf 'FAILED: %s\n' "$*" >&2
	exit 1
}

# store FILE: load a text into a database. Samples there have times, so each is given one first.
store()
{
	rm -rf "$work/store"
	mkdir -p "$work/store/wal"
	sed '/^#/!s/$/ 1700000000/' "$1" >"$work/timed"
	promtool tsdb create-blocks-from openmetrics "$work/timed" "$work/store" >"$work/log" 2>&1
}

# reads SERIES VALUE: the database has that sample.
reads()
{
	grep -qxF "$1 $2 1700000000000" "$work/series" || fail "no $1 of $2: $(cat "$work/series")"
}

"$print" prometheus >"$work/prometheus" || fail "it does not print"
promtool check metrics <"$work/prometheus" || fail "promtool rejects the Prometheus text"

"$print" openmetrics >"$work/openmetrics" || fail "it does not print"
store "$work/openmetrics" || fail "promtool does not read OpenMetrics: $(cat "$work/log")"
promtool tsdb dump "$work/store" >"$work/series" || fail "the database cannot be dumped"
[ "$(wc -l <"$work/series")" = "$(grep -vc '^#' "$work/openmetrics")" ] ||
	fail "samples are missing"
reads '{__name__="weir_limit"}' 20
reads '{__name__="weir_rtt_seconds", host="grün", name="learned"}' 0.001234567
reads '{__name__="weir_calls_total", host="grün", name="learned", status="timeout"}' 72
reads '{__name__="weir_inflight", host="C:\\a \"b\"\nc", name="shared"}' 2
reads '{__name__="weir_partition_share_ratio", host="C:\\a \"b\"\nc", name="shared", partition="say \"no\"\\\n"}' 0.3
reads '{__name__="app_queue_seconds", host="C:\\a \"b\"\nc", name="shared"}' 0.125
reads '{__name__="app_jobs_total", host="grün", name="learned"}' 12

# Faulty texts are rejected.
sed '$d' "$work/openmetrics" >"$work/cut"
store "$work/cut" && fail "a text without its end marker was accepted"
sed 's/0\.7$/0,7/' "$work/openmetrics" >"$work/comma"
store "$work/comma" && fail "a decimal comma was accepted"
echo "both formats are parsed correctly"
