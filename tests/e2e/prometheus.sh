#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The example server and a real Prometheus, which scrapes it as OpenMetrics and counts its calls.
# Usage: prometheus.sh WEIR_HTTPD
set -u
httpd=${1:-}
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
need_programs "$httpd"
command -v prometheus >/dev/null || skip "prometheus is missing"

scraper_says_port()
{
	scraper_port=$(sed -n 's/.*"Listening on" address=127.0.0.1://p' "$work/prometheus.log")
	[ -n "$scraper_port" ] || ! kill -0 "$scraper" 2>/dev/null
}

start_scraper()
{
	cat >"$work/prometheus.yml" <<-END
		global: {scrape_interval: 1s}
		scrape_configs:
		  - job_name: weir
		    static_configs: [{targets: ["127.0.0.1:$port"]}]
	END
	prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
		--web.listen-address=127.0.0.1:0 2>"$work/prometheus.log" &
	scraper=$!
	pids="$pids $scraper"
	wait_for scraper_says_port
	[ -n "$scraper_port" ] || fail "prometheus did not start"
}

# asked QUERY VALUE: the query gives one series, with that value
asked()
{
	curl -s -m 250 -G --data-urlencode "query=$1" \
		"http://127.0.0.1:$scraper_port/api/v1/query" >"$work/answer"
	[ "$(grep -o '"value":\[' "$work/answer" | wc -l)" = 1 ] &&
		grep -q "\"value\":\[[0-9.]*,\"$2\"\]" "$work/answer"
}

# metadata METRIC TEXT: the metric's metadata in Prometheus contain TEXT
metadata()
{
	curl -s -m 250 "http://127.0.0.1:$scraper_port/api/v1/metadata?metric=$1" |
		grep -qF "$2" || fail "not known of $1: $2"
}

start "$httpd" --rows 1000 --limit fixed:limit=7
for i in 1 2 3; do
	curl -s -m 250 -o /dev/null "$url/report" || fail "no report $i"
done

# Without a request for OpenMetrics, the answer has the older text format.
curl -s -m 250 -D "$work/headers" -o "$work/plain" "$url/metrics"
grep -qi '^content-type: text/plain; version=0.0.4' "$work/headers" || fail "wrong content type"
grep -q '^# TYPE weir_calls_total counter$' "$work/plain" || fail "not the Prometheus text"
promtool check metrics <"$work/plain" || fail "promtool reports errors"

start_scraper
wait_for asked 'weir_calls_total{name="report",status="success"}' 3
asked 'up{job="weir"}' 1 || fail "prometheus says it is down"
asked 'weir_limit' 7 || fail "the limit is 7"
asked 'sum(weir_admitted_total)' 3 || fail "three were admitted"
# Only OpenMetrics has units.
metadata weir_rtt_seconds '"unit":"seconds"'
metadata weir_calls '"type":"counter"'
grep -qE 'level=(warn|error)' "$work/prometheus.log" && fail "prometheus logged errors"
kill -TERM "$scraper"
wait "$scraper"
stop
echo "a real Prometheus reads the example server"
