#!/bin/sh
# promtool.sh WEIR_PRINT_METRICS - both formats, read by Prometheus' own parsers.
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

# store FILE: what is read is kept with its time, so each sample is given one first.
store()
{
	rm -rf "$work/store"
	mkdir -p "$work/store/wal"
	sed '/^#/!s/$/ 1700000000/' "$1" >"$work/timed"
	promtool tsdb create-blocks-from openmetrics "$work/timed" "$work/store" >"$work/log" 2>&1
}

# reads SERIES VALUE: the store has that.
reads()
{
	grep -qxF "$1 $2 1700000000000" "$work/series" || fail "no $1 of $2: $(cat "$work/series")"
}

"$print" prometheus >"$work/prometheus" || fail "it does not print"
promtool check metrics <"$work/prometheus" || fail "promtool does not like the Prometheus text"

"$print" openmetrics >"$work/openmetrics" || fail "it does not print"
store "$work/openmetrics" || fail "promtool does not read OpenMetrics: $(cat "$work/log")"
promtool tsdb dump "$work/store" >"$work/series" || fail "what was read cannot be dumped"
[ "$(wc -l <"$work/series")" = "$(grep -vc '^#' "$work/openmetrics")" ] ||
	fail "samples got lost"
reads '{__name__="weir_limit"}' 20
reads '{__name__="weir_rtt_seconds", host="grün", name="learned"}' 0.001234567
reads '{__name__="weir_calls_total", host="grün", name="learned", status="timeout"}' 72
reads '{__name__="weir_inflight", host="C:\\a \"b\"\nc", name="shared"}' 2
reads '{__name__="weir_partition_share_ratio", host="C:\\a \"b\"\nc", name="shared", partition="say \"no\"\\\n"}' 0.3

# It would notice.
sed '$d' "$work/openmetrics" >"$work/cut"
store "$work/cut" && fail "a text without its end was read"
sed 's/0\.7$/0,7/' "$work/openmetrics" >"$work/comma"
store "$work/comma" && fail "a comma was read"
echo "both formats are read as they are meant"
