#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The status page, as seen by a browser, by Prometheus, and by programs.
# Usage: page.sh NGINX MODULE ORIGIN
set -u
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

# gets TYPE CURL_OPTION...: fetch it to $work/page, and check the Content-Type
gets()
{
	local type=$1

	shift
	curl -s -m 250 -D "$work/headers" -o "$work/page" "$@"
	grep -qi "^Content-Type: $type" "$work/headers" || fail "$*: $(cat "$work/headers")"
	grep -qi '^Cache-Control: no-store' "$work/headers" || fail "it may be cached"
}

start_origin
start_nginx "
weir_zone main limit=vegas:initial=7,alpha=log10:2 queue=5 partition=a:share=0.25;
weir_zone other.one-2;
weir_zone busy limit=bbr;
weir zone=main;
server {
	listen 127.0.0.1:PORT;
	location /weir { weir_status_page; }
	location /busy { weir zone=busy; proxy_pass http://$upstream; }
	location / { proxy_pass http://$upstream; }
}"
for _ in 1 2 3; do
	status_of "$url/x" >"$work/code"
done
[ "$(status_of "$url/busy")" = 200 ] || fail "not served under a limit that watches processors"
wait_for stat_is succeeded 3
wait_for is_idle
wait_for is_idle busy

gets application/json "$url/weir"
for text in '{"time_ms":' '"name":"main","algorithm":"vegas:initial=7,alpha=log10:2","limit":7' \
	'"admitted":3' '"succeeded":3' '"queue":5,"workers":2' '"partitions":[{"name":"unknown"' \
	'{"name":"a","share":0.25,"guarantee":2' '"name":"other.one-2","algorithm":"elastic"'; do
	grep -qF "$text" "$work/page" || fail "no $text in $(cat "$work/page")"
done
if command -v jq >/dev/null; then
	jq -e . "$work/page" >/dev/null || fail "this is not JSON"
fi

gets 'text/html' -H 'Accept: text/html,*/*' "$url/weir"
grep -q '<svg\|element(.svg' "$work/page" || fail "no plot"
! grep -qE '(src|href)=|https?://' <(sed 's|http://www.w3.org/2000/svg||' "$work/page") ||
	fail "the page refers to other addresses"
if command -v xmllint >/dev/null; then
	xmllint --html --noout "$work/page" 2>"$work/lint" || fail "bad HTML: $(cat "$work/lint")"
fi

gets 'application/openmetrics-text' -H 'Accept: application/openmetrics-text;version=1.0.0' \
	"$url/weir"
grep -qxF 'weir_admitted_total{zone="main"} 3' "$work/page" || fail "no metric"
[ "$(tail -n 1 "$work/page")" = '# EOF' ] || fail "the metrics have no end"
gets 'text/plain' "$url/weir?format=prometheus"
if command -v promtool >/dev/null; then
	promtool check metrics <"$work/page" >"$work/promtool" 2>&1 || fail "$(cat "$work/promtool")"
fi

[ "$(status_of "$url/weir?format=nonsense")" = 400 ] || fail "no such format"
[ "$(status_of -d x "$url/weir")" = 405 ] || fail "it takes a POST"
[ "$(status_of -I "$url/weir")" = 200 ] || fail "it has no HEAD"
stat_is admitted 3 || fail "the page itself is limited"
stop_nginx
echo "the status page serves all formats"
