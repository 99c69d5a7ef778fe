#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Admission, refusal and bypass of requests, and that each request has one permit.
# Usage: decisions.sh NGINX MODULE ORIGIN
set -u
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

# holds ZONE N [PATH]: start N requests that stay in flight
holds()
{
	local i

	holders=''
	for ((i = 0; i < $2; i++)); do
		curl -s -m 250 -o /dev/null "$url${3:-/$1/hang}" &
		holders="$holders $!"
	done
	wait_for stat_is inflight "$2" "$1"
}

# End them.
let_go()
{
	# shellcheck disable=SC2086
	kill $holders
	wait_for is_idle "$1"
}

refuses()
{
	local before

	before=$(stat_of rejected)
	holds main 2
	[ "$(status_of -D "$work/headers" "$url/main/x")" = 503 ] || fail "not refused"
	grep -qi '^Retry-After: 1' "$work/headers" || fail "no Retry-After"
	[ "$(status_of -D "$work/headers" "$url/main/busy")" = 429 ] || fail "not its own status"
	grep -qi '^Retry-After: 3' "$work/headers" || fail "not its own Retry-After"
	[ "$(status_of -D "$work/headers" "$url/main/quiet")" = 503 ] || fail "not refused quietly"
	! grep -qi '^Retry-After' "$work/headers" || fail "a Retry-After that is off"
	grep -q '\[warn\].*limiting requests by weir zone "main": limit 2, in flight 2' \
		"$work/error.log" || fail "the refusal is not in the error log"
	let_go main
	[ "$(status_of "$url/main/x")" = 200 ] || fail "refused, with all permits back"
	wait_for logged '^/main/x 503 REJECTED zone=main partition=- limit=2 inflight=2 .* rtt=-$'
	wait_for logged '^/main/x 200 PASSED zone=main partition=- limit=2 inflight=1 waited=0.0'
	[ "$(stat_of rejected)" = $((before + 3)) ] || fail "3 refusals expected"
}

# An error page is served without a permit of its own.
has_error_page()
{
	holds main 2
	[ "$(curl -s -m 250 "$url/main/page")" = "come back later" ] || fail "no error page"
	[ "$(status_of "$url/main/page")" = 503 ] || fail "the error page has lost the status"
	stat_is inflight 2 || fail "an error page has taken a permit"
	let_go main
}

# Internal redirects of a request share one permit, of the first location.
has_one_permit()
{
	local before

	before=$(stat_of admitted once)
	for path in index/ rewritten named included; do
		[ "$(status_of "$url/once/$path")" = 200 ] || fail "/once/$path is not served"
	done
	wait_for is_idle once
	[ "$(stat_of admitted once)" = $((before + 4)) ] ||
		fail "4 requests took $(($(stat_of admitted once) - before)) permits"
	stat_is admitted 0 other || fail "a redirect took another zone's permit"
	stat_is double_released 0 once || fail "a permit was released twice"
}

# The share of a class is available whatever the others do. An unknown class has none.
has_partitions()
{
	holds parts 4 '/parts/hang?class=batch'
	[ "$(status_of "$url/parts/x?class=batch")" = 503 ] || fail "above its cap"
	[ "$(status_of "$url/parts/x?class=live")" = 200 ] || fail "its share is not available"
	[ "$(status_of "$url/parts/x?class=other")" = 200 ] || fail "there is room"
	let_go parts
	wait_for logged '^/parts/x 503 REJECTED zone=parts partition=batch'
	wait_for logged '^/parts/x 200 PASSED zone=parts partition=live'
	wait_for logged '^/parts/x 200 PASSED zone=parts partition=unknown'
}

lets_through()
{
	holds main 2
	[ "$(status_of "$url/main/health?check=1")" = 200 ] || fail "a bypass is refused"
	[ "$(status_of "$url/main/health?check=0")" = 503 ] || fail "0 is no bypass"
	[ "$(status_of "$url/main/shadow")" = 200 ] || fail "refused in shadow mode"
	[ "$(status_of "$url/free/x")" = 200 ] || fail "limited where weir is off"
	let_go main
	wait_for logged '^/main/health 200 BYPASSED zone=main'
	wait_for logged '^/main/shadow 200 SHADOW zone=main'
	wait_for logged '^/free/x 200 - zone=- partition=- limit=- inflight=- waited=- rtt=-$'
	grep -q 'limiting requests, shadow by weir zone "main"' "$work/error.log" ||
		fail "shadow mode does not log"
	wait_for stat_is passing 0
}

has_costs()
{
	holds main 1
	[ "$(status_of "$url/main/cost?cost=2")" = 503 ] || fail "there is room for one only"
	[ "$(status_of "$url/main/cost?cost=1")" = 200 ] || fail "there is room for one"
	[ "$(status_of "$url/main/cost?cost=none")" = 200 ] || fail "no cost is 1"
	let_go main
	grep -q 'weir: "none" is not a valid cost' "$work/error.log" || fail "a bad cost is not logged"
}

# Two workers share one limit over all connections, and each HTTP/2 stream is a request.
holds_over_connections()
{
	curl -s -m 250 -Z --parallel-immediate --parallel-max 8 -o /dev/null -w '%{http_code}\n' \
		"$url/main/x?ms=300&n=[1-8]" >"$work/codes" 2>/dev/null
	[ "$(grep -c 200 "$work/codes")" -ge 2 ] || fail "fewer than two of eight were served"
	[ "$(curl -s "http://$upstream/busy" | cut -d' ' -f2)" -le 2 ] || fail "two workers have two limits"
	wait_for is_idle main
	[ "$(status_of --http2-prior-knowledge "$url2/main/x")" = 200 ] || fail "no HTTP/2"
	wait_for is_idle main
}

start_origin
second=$("$origin" --port)
url2=http://127.0.0.1:$second
mkdir -p "$work/html/once/index"
echo "come back later" >"$work/html/later"
echo index >"$work/html/once/index/index.html"
start_nginx "
weir_zone main limit=fixed:limit=2;
weir_zone once limit=fixed:limit=2;
weir_zone other limit=fixed:limit=2;
weir_zone parts limit=fixed:limit=8 partition=live:share=0.5 partition=batch:cap=0.5;
server {
	listen 127.0.0.1:PORT;
	listen 127.0.0.1:$second http2;
	root $work/html;
	location /weir { weir_status_page; }
	location /main/ {
		weir zone=main;
		proxy_pass http://$upstream/;
		location /main/busy { weir_status 429; weir_retry_after 3s; proxy_pass http://$upstream/; }
		location /main/quiet { weir_retry_after off; proxy_pass http://$upstream/; }
		location /main/shadow { weir_shadow on; proxy_pass http://$upstream/; }
		location /main/health { weir zone=main bypass=\$arg_check; proxy_pass http://$upstream/; }
		location /main/cost { weir zone=main cost=\$arg_cost; proxy_pass http://$upstream/; }
		location /main/page { error_page 503 /main/later; proxy_pass http://$upstream/; }
		location /main/later { internal; alias $work/html/later; }
	}
	location /once/ {
		weir zone=once;
		location /once/index/ { index index.html; }
		location /once/rewritten { error_page 404 =200 /else/found; }
		location /once/named { try_files /nothing @named; }
		location /once/included { auth_request /once/auth; proxy_pass http://$upstream/; }
		location /once/auth { proxy_pass http://$upstream/; }
	}
	location /else/ { weir zone=other; proxy_pass http://$upstream/; }
	location @named { weir zone=other; proxy_pass http://$upstream; }
	location /parts/ { weir zone=parts partition=\$arg_class; proxy_pass http://$upstream/; }
	location /free/ { weir off; proxy_pass http://$upstream/; }
}"
holds_over_connections
refuses
has_error_page
has_one_permit
has_partitions
lets_through
has_costs
stop_nginx
echo "decisions are as configured"
