#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The errors that nginx -t reports for bad configurations, with their lines.
# Usage: errors.sh NGINX MODULE ORIGIN
set -u
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

count=0
zone='weir_zone main limit=fixed:limit=2 queue=10 shed=on partition=live:share=0.5;'

# check HTTP: run nginx -t; HTTP begins at line 5 of the file
check()
{
	printf 'load_module %s;\npid %s;\nevents {}\nhttp {\n%s\n}\n' "$module" "$work/nginx.pid" \
		"$1" >"$work/nginx.conf"
	run_nginx -t >"$work/said" 2>&1
}

accepts()
{
	check "$1" || fail "refused: $1
$(cat "$work/said")"
}

# refuses SENTENCE HTTP: "*" in the sentence matches anything; the error is in the last line of HTTP
# that contains a word
refuses()
{
	local http=$2 line

	line=$(printf '%s\n' "$http" | grep -n '[a-z]' | tail -n 1 | cut -d: -f1)
	! check "$http" || fail "accepted: $http"
	said=$(sed -n "s/^nginx: .emerg. //p" "$work/said")
	# shellcheck disable=SC2053
	[[ $said == $1" in $work/nginx.conf:$((line + 4))" ]] ||
		fail "\"$http\" gives:
$(cat "$work/said")
instead of: $1 in $work/nginx.conf:$((line + 4))"
	count=$((count + 1))
}

# refuses_zone SENTENCE PARAMETERS: the parameters of weir_zone
refuses_zone()
{
	refuses "$1" "weir_zone main $2;"
}

# refuses_here SENTENCE DIRECTIVE: in a location, with a zone
refuses_here()
{
	refuses "$1" "$zone
server { location / {
$2
} }"
}

accepts "$zone
weir_zone plain;
weir_zone all limit=vegas:alpha=log10:2,max=500 limit_min=2 limit_max=1000 burst=4 queue=100
	order=adaptive queue_stand=50ms shed=strict windowing=time window_min=10ms window_max=1s
	window_samples=20 sparse=extend statistic=quantile quantile=0.9 rtt_threshold=1ms
	rtt_smoothing=0.5 workers=8 partition=a:share=0.5:cap=0.9:max=100:delay=20ms partition=b
	partition_hold=200ms delayed_max=50;
weir zone=main wait=50ms partition=live priority=-16 cost=2 bypass=\$arg_b;
weir_status 429; weir_retry_after 2s; weir_log_level info; weir_shadow on; weir_rtt upstream;
weir_outcome 500-503 dropped; weir_outcome 504 408 timed_out;
weir_detach upgraded after=10s if=\$arg_d;
server {
	weir off; weir_detach off; weir_retry_after off;
	location / { weir zone=plain; }
	location /weir { weir_status_page; }
}"
for limit in aimd bbr brpc cautious codel elastic envoy failsafe fixed:limit=9 gradient gradient2 \
	hillclimb protego settable vector vegas; do
	accepts "weir_zone main limit=$limit;"
done

# weir_zone
refuses 'invalid number of arguments in "weir_zone" directive' 'weir_zone;'
refuses '"a b" is not a zone name: letters, digits, "_", "-" and ".", at most 63' \
	'weir_zone "a b";'
refuses 'there are two zones "main"' "$zone
weir_zone main;"
refuses '"weir_zone" directive is not allowed here' 'server {
weir_zone main;
}'
refuses_zone 'zone "main": "queue" must be name=value' 'queue'
refuses_zone 'zone "main" has no parameter "depth=3"' 'depth=3'
refuses_zone 'zone "main": "queue" is given twice' 'queue=1 queue=1'
refuses_zone 'zone "main": "limit" is given twice' 'limit=vegas limit=vegas'
refuses_zone 'zone "main": "limit" is empty' 'limit='
refuses_zone '"queue" must be a whole number from 0 to 65535, not "many"' 'queue=many'
refuses_zone '"queue" must be a whole number from 0 to 65535, not "70000"' 'queue=70000'
refuses_zone '"order" must be fifo or lifo or adaptive, not "random"' 'queue=1 order=random'
refuses_zone 'zone "main": "order" needs "queue"' 'order=lifo'
refuses_zone '"queue_stand" must be a time from 1ms to 1h, not "soon"' 'queue=1 queue_stand=soon'
refuses_zone 'zone "main": There is no limit "nonsense"; there are elastic, *vegas' 'limit=nonsense'
refuses_zone 'zone "main": vegas: it has no parameter "nonsense"' 'limit=vegas:nonsense=1'
refuses_zone 'zone "main": vegas: alpha cannot be "nonsense"; its default is log10:3' \
	'limit=vegas:alpha=nonsense'
refuses_zone 'zone "main": elastic: target is 7, outside 0.05 to 0.9' 'limit=elastic:target=7'
refuses_zone 'zone "main": limit_min is above limit_max' 'limit_min=9 limit_max=3'
refuses_zone '"limit_max" must be a whole number from 1 to 8388607, not "0"' 'limit_max=0'
refuses_zone 'zone "main": window_min is above window_max' 'window_min=2s window_max=1s'
refuses_zone '"windowing" must be time or sample, not "often"' 'windowing=often'
refuses_zone '"statistic" must be mean or min or quantile, not "median"' 'statistic=median'
refuses_zone '"quantile" must be a number from 0.001 to 0.999, not "1"' \
	'statistic=quantile quantile=1'
refuses_zone 'zone "main": "quantile" needs "statistic=quantile"' 'quantile=0.5'
refuses_zone '"burst" must be a whole number from 0 to 8388607, not "-1"' 'burst=-1'
refuses_zone '"shed" must be off or on or strict, not "maybe"' 'shed=maybe'
refuses_zone 'zone "main": "shed_floor" needs "shed=on"' 'shed_floor=0.1'
refuses_zone '"workers" must be a whole number from 1 to 8192, not "9000"' 'workers=9000'
refuses_zone '"a/b" is not a partition name: letters, digits, "_", "-" and ".", at most 63' \
	'partition=a/b'
refuses_zone 'partition "a" has no setting "size=1"; it has share, cap, max, delay' \
	'partition=a:size=1'
refuses_zone '"share" must be a number from 0.000 to 1.000, not "2"' 'partition=a:share=2'
refuses_zone 'zone "main": The shares add up to 1.4, more than 1' 'partition=a:share=0.7 partition=b:share=0.7'
refuses_zone 'zone "main": There are two partitions named a' 'partition=a partition=a'
refuses_zone 'zone "main": "delayed_max" needs "partition"' 'delayed_max=3'
refuses_zone 'zone "main" has more than 64 partitions' \
	"$(seq -f 'partition=p%.0f' -s ' ' 1 65)"
refuses 'the shared memory zone "main" is already declared for a different use' \
	'limit_conn_zone $server_name zone=main:1m;
weir_zone main;'

# weir
refuses_here '"weir" needs "zone="' 'weir wait=1s;'
refuses_here 'there is no zone "other"; a "weir_zone" must define it before' 'weir zone=other;'
refuses_here '"zone" is given twice' 'weir zone=main zone=main;'
refuses_here '"weir" directive is duplicate' 'weir zone=main; weir zone=main;'
refuses_here 'unexpected "wait=1s" after "weir off"' 'weir off wait=1s;'
refuses_here '"weir" has no parameter "delay=1s"' 'weir zone=main delay=1s;'
refuses_here '"wait" must be a time above zero, not "0"' 'weir zone=main wait=0;'
refuses_here '"wait" is given twice' 'weir zone=main wait=1s wait=1s;'
refuses_here 'zone "main" has no partition "batch"' 'weir zone=main partition=batch;'
refuses_here '"priority" must be from -16 to 15, not "16"' 'weir zone=main priority=16;'
refuses_here '"cost" must be from 1 to 8388607, not "0"' 'weir zone=main cost=0;'
refuses_here '"bypass" is empty' 'weir zone=main bypass=;'
refuses '"wait" needs a queue, and zone "plain" has none' 'weir_zone plain;
weir zone=plain wait=1s;'
refuses '"partition" needs partitions, and zone "plain" has none' 'weir_zone plain;
weir zone=plain partition=$host;'
refuses '"priority" needs "shed=on" of zone "plain"' 'weir_zone plain;
weir zone=plain priority=3;'

# The others
refuses_here 'the status of a refusal must be from 400 to 599, not "200"' 'weir_status 200;'
refuses_here '"weir_status" directive is duplicate' 'weir_status 503; weir_status 503;'
refuses_here '"weir_retry_after" must be a time from 1s, or off, not "soon"' \
	'weir_retry_after soon;'
refuses_here 'invalid value "loud"' 'weir_log_level loud;'
refuses_here 'invalid value "maybe" in "weir_shadow" directive, it must be "on" or "off"' \
	'weir_shadow maybe;'
refuses_here 'invalid value "client"' 'weir_rtt client;'
refuses_here '"bad" is not an outcome: success, ignored, dropped, timed_out, cancelled, failed' \
	'weir_outcome 500 bad;'
refuses_here '"6xx" is not a status: 100 to 599, 500-504, or 5xx' 'weir_outcome 6xx failed;'
refuses_here '"504-500" is not a status: 100 to 599, 500-504, or 5xx' \
	'weir_outcome 504-500 failed;'
refuses_here 'status 503 already has an outcome' 'weir_outcome 503 failed; weir_outcome 5xx dropped;'
refuses_here '"weir_detach" has no parameter "never"; it has upgraded, after, if' \
	'weir_detach never;'
refuses_here '"after" must be a time above zero, not "later"' 'weir_detach after=later;'
refuses_here 'unexpected "upgraded" after "weir_detach off"' 'weir_detach off upgraded;'
refuses_here '"weir" cannot limit a status page' 'weir zone=main; weir_status_page;'
refuses '"weir_status_page" directive is not allowed here' 'server {
weir_status_page;
}'

[ "$count" -ge 60 ] || fail "only $count kinds of bad configuration"
echo "$count bad configurations are refused with the right error"
