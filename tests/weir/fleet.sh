#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# fleet.sh WEIR SHARER SCREEN STORE - weir fleet with members that share a limit over that store:
# shm, redis or etcd, which is started for it.
set -u
. "$(dirname "$0")/common.sh"

store=$4
server=''
name=limit-$$
long=payments-7d9f8b6c4-x2x7q:1 # a label, and how tables have it
cut='payment~x2x7q:1'
e='' # of one more holder

end_server()
{
	[ -z "$server" ] || kill -9 "$server" 2>/dev/null
	clean_up
}
trap end_server EXIT

need()
{
	command -v "$1" >/dev/null || { echo "SKIPPED: $1 is not installed"; exit 77; }
}

# free_port: prints a loopback port that was free a moment ago.
free_port()
{
	while :; do
		port=$(od -An -N2 -tu2 /dev/urandom)
		port=$((1024 + port % 31000))
		grep -q "$(printf ':%04X ' $port)" /proc/net/tcp /proc/net/tcp6 2>/dev/null || break
	done
	echo "$port"
}

is_up()
{
	"$weir" fleet list >/dev/null 2>&1 || ! kill -0 "$server" 2>/dev/null
}

# Another may have taken the port in the meantime: then it ends at once.
start_server()
{
	for try in 1 2 3 4 5; do
		port=$(free_port)
		export WEIR_FLEET="$store://127.0.0.1:$port"
		if [ "$store" = redis ]; then
			need redis-server
			redis-server --port "$port" --dir "$work" --bind 127.0.0.1 --save '' \
				--appendonly yes --appendfsync always >"$work/server" 2>&1 &
		else
			need etcd
			peer=http://127.0.0.1:$(free_port)
			etcd --data-dir "$work/etcd$try" --logger zap --log-outputs stderr \
				--listen-client-urls "http://127.0.0.1:$port" \
				--advertise-client-urls "http://127.0.0.1:$port" \
				--listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" \
				--initial-cluster "default=$peer" >"$work/server" 2>&1 &
		fi
		server=$!
		wait_for is_up
		! kill -0 "$server" 2>/dev/null || return
	done
	fail "no server: $(cat "$work/server")"
}

# member LINE: the number of the member in that line of the list
member()
{
	"$weir" fleet show "$name" | awk -v line="$1" '/^  MEMBER/ { n = NR } n && NR == n + line { print $1 }'
}

# shows PATTERN
shows()
{
	says "$1" fleet show "$name"
}

# share_of MEMBER
share_of()
{
	"$weir" fleet show "$name" | awk -v member="$1" '$1 == member { print $5; exit }'
}

has()
{
	[ "$(share_of "$1")" = "$2" ]
}

# number_of LABEL: as it is shown
number_of()
{
	"$weir" fleet show "$name" | awk -v label="$1" '$2 == label { print $1; exit }'
}

# Of a process that has said nothing.
label_of()
{
	host=$(uname -n | tr -d '\n' | tr -c '[:alnum:]_.:@-' - | cut -c 1-$((62 - ${#1})))
	echo "$host:$1"
}

nothing_there()
{
	expect 0 '^NAME +CAPACITY +EFFECTIVE +GRANTED +WANTED +MEMBERS +ALLOTMENT +PARTITIONS$' fleet list
	[ "$(wc -l <"$work/out")" = 1 ] || complain "an empty store: $(cat "$work/out")"
	expect 0 '"limits": \[\]' fleet list --json
	one_line 1 "^weir: $name: There is no limit of that name" fleet show "$name"
	one_line 1 "^weir: $name: There is no limit of that name" fleet top "$name"
	one_line 1 "^weir: $name: There is no limit of that name" fleet set "$name" capacity=7
	one_line 1 "^weir: $name: There is no limit of that name" fleet remove "$name"
	one_line 1 "^weir: $name: There is no limit of that name" fleet drain "$name" 0a
	odd=$(printf 'a\033[2J\377/b')
	for command in show remove top; do
		one_line 1 '^weir: a.x1b\[2J.xff/b: A name has 1 to 200 letters' fleet $command "$odd"
	done
	one_line 1 '^weir: a.x1b\[2J.xff/b: A name has 1 to' fleet make "$odd" capacity=1
}

# A limit that is made before anybody joins is the members', whatever they are configured as.
make_and_set()
{
	expect 0 '' fleet make "$name" capacity=60 lease=1.5
	one_line 1 "^weir: $name: It is there already" fleet make "$name" capacity=60
	expect 0 "^$name +60 +60 +0 +0 +0 fair +0\$" fleet list
	expect 0 "^$name: capacity 60, effective 60, granted 0, wanted 0\$" fleet show "$name"
	expect 0 'allotment fair, lease 1.50s, 0 members' fleet show "$name"
	expect 0 '^  nothing is granted: It has no members\.$' fleet show "$name"
	one_line 1 "^weir: $name: What is reserved for all members is above the capacity" \
		fleet set "$name" reserved=10 members=7
	one_line 1 "^weir: $name: reserved and members belong together" fleet set "$name" members=7
	expect 0 '' fleet set "$name" reserved=5 members=2 allotment=proportional
	expect 0 'allotment proportional, lease 1.50s, 5 reserved for each of 2 members' \
		fleet show "$name"
	one_line 1 "^weir: $name: What is reserved for all members is above the capacity" \
		fleet set "$name" capacity=9
	expect 0 '' fleet set "$name" reserved=0 allotment=fair
	one_line 64 'allocated=2: not a whole number up to 1' fleet set "$name" allocated=2
	expect 0 '' fleet set "$name" allocated=1
	expect 0 '^  allocated by none of them yet$' fleet show "$name"
	expect 0 '"allocated": true' fleet show --json "$name"
	expect 0 '' fleet set "$name" allocated=0
	expect 0 '"allocated": false' fleet show --json "$name"
	expect 0 '' fleet remove "$name"
	expect 0 '' fleet make "$name" capacity=60
}

members()
{
	hold a 3 "$WEIR_FLEET" "$name" 500 100 "$long"
	hold b 4 "$WEIR_FLEET" "$name" 500 100
	tell a 3 until 30
	tell b 4 until 30
	expect 0 "^$name +60 +60 +60 +200 +2 fair +[0-4]\$" fleet list
	tell a 3 owns 2
	tell b 4 owns 2
	expect 0 "^$name: 4 partitions with an owner, 2 members\$" fleet show "$name"
	for number in 0 1 2 3; do
		wait_for shows "^  [0-9a-f]{16} [^ ]+ +$number - +4$number|^  [0-9a-f]{16} [^ ]+ +$number - +$((41 + number)) +4 [0-9]+\$"
	done
	first=$(member 1)
	second=$(member 2)
	labelled=$(number_of "$cut")
	expect 0 "^  $first [^ ]+ +100 +30 +30 +1 +0 [0-9]+\$" fleet show "$name"
	expect 0 "^  $labelled $cut +100 +30 +30 +1 +0 [0-9]+\$" fleet show "$name"
	expect 0 "^  [0-9a-f]{16} $cut +[0-3] - +4[1-4] +4 [0-9]+\$" fleet show "$name"
	[ "$(awk '/^  (MEMBER|OWNER) +LABEL / && length <= 80' "$work/out" | wc -l)" = 2 ] ||
		complain "too wide: $(cat "$work/out")"
	expect 0 "^  [^ ]+ and 1 more: Configured with capacity 500, where the limit has capacity 60\.\$" \
		fleet show "$name"
	expect 0 '' fleet set "$name" capacity=40
	wait_for has "$first" 20
	wait_for has "$second" 20
}

json()
{
	"$weir" fleet show --json "$name" >"$work/json" || complain "JSON: $(cat "$work/json")"
	"$weir" fleet list --json --count=2 --interval=0.1 >"$work/lines" || complain 'JSON by lines'
	[ "$(wc -l <"$work/lines")" = 2 ] || complain "not two lines: $(cat "$work/lines")"
	command -v jq >/dev/null || return
	jq -e --arg name "$name" --arg long "$long" --arg other "$(label_of "$b")" '.limits[0] | .name == $name and .capacity == 40 and
		.granted == 40 and .wanted == 200 and .member_count == 2 and
		(.members | length == 2 and all(.grant == 20 and .drained == false)) and
		(.members | all(.mismatch == "Configured with capacity 500, where the limit has capacity 40.")) and
		([.members[].label] | sort) == ([$long, $other] | sort) and
		.partitions.owned == 4 and .partitions.partitions[0].weight == 1 and .partitions.partitions[3].checkpoint.sequence == 44 and
		([.partitions.partitions[] | select(.label == $long and .asked_by_label == null)] | length) == 2' \
		"$work/json" >/dev/null || complain "JSON: $(cat "$work/json")"
	jq -e '.limits | length == 1 and .[0].members == null' "$work/lines" >/dev/null ||
		complain "JSON by lines: $(cat "$work/lines")"
}

# parsed FILE: by Prometheus's own tools, where they are installed.
parsed()
{
	[ "$(tail -n 1 "$1")" = '# EOF' ] || complain "no end: $(cat "$1")"
	command -v promtool >/dev/null || return
	rm -rf "$work/store"
	mkdir -p "$work/store/wal"
	sed '/^#/!s/$/ 1700000000/' "$1" >"$work/timed"
	promtool tsdb create-blocks-from openmetrics "$work/timed" "$work/store" >"$work/log" 2>&1 ||
		complain "promtool does not read it: $(cat "$work/log")"
}

# Of a member itself, and of the store as an observer sees it.
openmetrics()
{
	tell a 3 metrics
	sed '/^done$/d' "$work/a.out" >"$work/metrics"
	for line in 'weir_fleet_store_up{zone="a \"quoted\" one"} 1' \
		"weir_share_units{limit=\"$name\",zone=\"a \\\"quoted\\\" one\"} 20" \
		"weir_work_owned{work=\"$name\",zone=\"a \\\"quoted\\\" one\"} 2"; do
		grep -qxF "$line" "$work/metrics" || complain "no $line in $(cat "$work/metrics")"
	done
	parsed "$work/metrics"
	"$weir" fleet list --openmetrics >"$work/metrics" || complain 'list --openmetrics'
	grep -qxF "weir_fleet_limit_wanted{limit=\"$name\"} 200" "$work/metrics" ||
		complain "no metric: $(cat "$work/metrics")"
	! grep -q member= "$work/metrics" || complain 'members in a list'
	parsed "$work/metrics"
	"$weir" fleet show -o "$name" "$name" >"$work/metrics" || complain 'show --openmetrics'
	for line in "weir_fleet_limit_capacity{limit=\"$name\"} 40" \
		"weir_fleet_work_owned{work=\"$name\"} 4" \
		"weir_fleet_member_share{label=\"$long\",limit=\"$name\",member=\"$labelled\"} 20"; do
		grep -qxF "$line" "$work/metrics" || complain "no $line in $(cat "$work/metrics")"
	done
	parsed "$work/metrics"
	one_line 64 'openmetrics cannot be used with --interval' fleet list -o -c 2
}

# What it holds goes to the others, and comes back.
drain()
{
	one_line 64 'a/b is neither a member.s number, as in weir fleet show, nor a label' \
		fleet drain "$name" a/b
	one_line 64 'is neither a member.s number' fleet drain "$name" ''
	one_line 1 "$second-: it has no such member" fleet drain "$name" "$second-"
	one_line 1 'ffffffffffffffff: it has no such member' fleet drain "$name" ffffffffffffffff
	expect 0 '' fleet drain "$name" "$second"
	wait_for has "$first" 40
	wait_for has "$second" 0
	expect 0 "^  $second [^ ]+ +100 +0 +0 +1 +0 [0-9]+  drained\$" fleet show "$name"
	! grep -q 'An operator' "$work/out" || complain "said twice: $(cat "$work/out")"
	tell a 3 want 0
	tell b 4 want 0
	wait_for shows '^  nothing is granted: No member wants anything\.$'
	expect 0 "^  [^ ]+: It wants nothing\.\$" fleet show "$name"
	"$weir" fleet show --json "$name" >"$work/json"
	grep -q '"reason": "No member wants anything."' "$work/json" || complain "no reason in JSON"
	tell a 3 want 100
	tell b 4 want 100
	wait_for has "$first" 40
	one_line 1 "^weir: $name: It has members" fleet remove "$name"
	expect 0 '' fleet undrain "$name" "$second"
	wait_for has "$second" 20
	wait_for has "$first" 20
}

# By its label, if no other member has the same.
drain_labelled()
{
	one_line 1 "payments: it has no such member" fleet drain "$name" payments
	one_line 64 "$cut is neither" fleet drain "$name" "$cut"
	expect 0 '' fleet drain "$name" "$long"
	wait_for has "$labelled" 0
	expect 0 "^  $labelled $cut .*  drained\$" fleet show "$name"
	expect 0 '' fleet undrain "$name" "$long"
	wait_for has "$labelled" 20
	other=$(label_of "$b")
	expect 0 '' fleet drain "$name" "$other" "$long"
	expect 0 '' fleet undrain "$name" "$labelled" "$other"
	wait_for has "$first" 20
	wait_for has "$second" 20
	hold d 5 "$WEIR_FLEET" "$name" 500 0 "$long"
	wait_for shows ', 3 members$'
	for command in drain undrain; do
		one_line 1 "^weir: $name: $long: several members have that label" \
			fleet $command "$name" "$long"
	done
	expect 0 '' fleet drain "$name" "$labelled"
	wait_for has "$labelled" 0
	expect 0 '' fleet undrain "$name" "$labelled"
	exec 5>&-
	wait "$d" || complain 'a sharer failed'
	wait_for has "$labelled" 20
	# A label that is another's number takes nothing from that.
	hold e 5 "$WEIR_FLEET" "$name" 500 0 "$labelled"
	wait_for shows ', 3 members$'
	expect 0 '' fleet drain "$name" "$labelled"
	wait_for has "$labelled" 0
	expect 0 '' fleet undrain "$name" "$labelled"
	exec 5>&-
	wait "$e" || complain 'a sharer failed'
	wait_for has "$labelled" 20
}

# sequence_of PARTITION: of its checkpoint
sequence_of()
{
	"$weir" fleet show "$name" | awk -v number="$1" '$3 == number && $4 == "-" { print $5; exit }'
}

at()
{
	[ "$(sequence_of "$1")" = "$2" ]
}

# The owners lose them and own them again, and go on from there.
rewind()
{
	for arguments in '' 'to=3' '0' '0 to=x' '0 to=' '1024 to=3' 'x to=3' 'all 0 to=3' \
		'0 to=nothing value=x' '0 to=3 --by=a/b'; do
		# shellcheck disable=SC2086
		expect 64 '^Try |: ' fleet rewind "$name" $arguments
	done
	one_line 1 "^weir: other-$$: There is no such partition" fleet rewind "other-$$" all to=3
	one_line 1 "^weir: $name: 4: There is no such partition" fleet rewind "$name" 4 to=nothing
	one_line 1 "^weir: $name: 3: Its checkpoint, if there is one, is below 45 already" \
		fleet rewind "$name" 3 to=45
	expect 0 '^1 checkpoint set back$' fleet rewind --by=me:1 "$name" 3 to=7 value=from-7
	# The owner may have lost it already, and not have claimed it anew.
	expect 0 '  ([0-9a-f]{16}|-) +[^ ]+ +3 - +7 +6 ([0-9]+|-)  set back 1 time, 2.*Z by me:1$' \
		fleet show "$name"
	expect 0 '^2 checkpoints set back$' fleet rewind "$name" 1 3 to=nothing
	expect 0 '  ([0-9a-f]{16}|-) +[^ ]+ +3 - +- +- .*  set back 2 times, 2.*Z by [^ ]+@' \
		fleet show "$name"
	expect 0 '^2 checkpoints set back$' fleet rewind "$name" all to=40
	tell a 3 owns 2
	tell b 4 owns 2
	for number in 0 1 2 3; do
		wait_for at $number $((41 + number))
	done
	command -v jq >/dev/null || return
	"$weir" fleet show --json "$name" | jq -e '.limits[0].partitions.partitions |
		map(.rewound.times) == [1, 1, 1, 2] and .[3].rewound.last > 1600000000' \
		>/dev/null || complain 'JSON of what was set back'
}

# rate_shows PATTERN
rate_shows()
{
	says "$1" fleet show "$name-rate"
}

# Of another name, as its members are configured with it, and then for all of them.
resize()
{
	for arguments in '' 'capacity=0' 'capacity=x' 'factor=0' 'colour=3'; do
		# shellcheck disable=SC2086
		expect 64 '^Try |: ' fleet resize "$name" $arguments
	done
	one_line 1 "^weir: other-$$: There are no partitions of that name" fleet resize "other-$$" factor=3
	one_line 1 "^weir: $name: It is not a capacity" fleet resize "$name" capacity=3
	tell a 3 rate 500 25
	tell a 3 has 500
	expect 0 '^  capacity 500 in partitions of 25$' fleet show "$name-rate"
	one_line 1 "^weir: $name-rate: It is not a capacity, or" fleet resize "$name-rate" capacity=5000 factor=1
	expect 0 '' fleet resize "$name-rate" capacity=630
	tell a 3 has 630
	expect 0 '' fleet resize "$name-rate" factor=70 capacity=560
	tell a 3 has 560
	# Configured otherwise, it follows.
	tell b 4 rate 500 25
	wait_for rate_shows ': 8 partitions with an owner, 2 members$'
	expect 0 '^  capacity 560 in partitions of 70, as it was set$' fleet show "$name-rate"
	tell a 3 has 560
	expect 0 '' fleet resize "$name-rate" capacity=490
	tell a 3 has 490
	expect 0 '"changes": 3' fleet show --json "$name-rate"
}

live()
{
	TERM=xterm-256color "$screen" 100x12 "$weir" fleet top -i 0.1 <<-END || complain 'live'
		expect ^weir fleet top  [12] limits? .*[0-9][0-9]:[0-9][0-9]:[0-9][0-9]\$
		expect ^NAME +CAPACITY +GRANTED +WANTED +MEMBERS  GRANTED, 6.00s
		expect ^$name +40 +40 +200 +2  +█████
		key enter
		expect ^weir fleet top  $name
		expect ^capacity 40, effective 40, fair, lease
		expect ^all +200 +40 +█████
		expect ^MEMBER +LABEL +WANTS
		expect ^$first [^ ]+ +100 +20 +1 +0  +█████
		expect ^$labelled $cut +100 +20 +1 +0  +█████
		bold █████
		key down
		absent ^$first
		expect ^$second
		key up
		expect ^$first
		type h
		expect ^In the list
		type x
		size 100x5
		expect ^all
		size 30x3
		expect ^weir
		size 100x12
		key escape
		expect ^NAME
		key home
		key enter
		expect ^all
		type q
		expect ^NAME
		type q
		exited 0
		restored
	END
	TERM=xterm "$screen" 100x12 "$weir" fleet top --ascii -i 0.1 "$name" <<-END || complain 'live, of one'
		expect ^$second [^ ]+ +100 +20 +1 +0  +#####
		type q
		exited 0
		ascii
		restored
	END
}

# It goes while it is watched; what a dead member leaves is told from what others hold.
leave()
{
	one_line 1 'not a terminal; use weir fleet show in scripts' fleet top
	exec 3>&-
	wait "$a" || complain 'a sharer failed'
	wait_for shows "^  [0-9a-f]{16} [^ ]+ +100 +40 +40 "
	exec 4>&-
	wait "$b" || complain 'a sharer failed'
	expect 0 '' fleet remove "$name"
	expect 0 "^$name +- +- +- +- +0 - +0\$" fleet list # checkpoints stay
}

# A drained label is still drained when its process has been restarted.
drain_restarted()
{
	one_line 1 "web-9: no member has that label" fleet undrain --label "$name" web-9
	expect 0 '' fleet drain "$name" "$long" --label
	wait_for has "$labelled" 0
	one_line 1 "$labelled: its label is drained: undrain it with --label" \
		fleet undrain "$name" "$labelled"
	exec 3>&-
	wait "$a" || complain 'a sharer failed'
	wait_for shows "^  - +$cut +- +- +- +- +- -  drained, not there\$"
	hold a 3 "$WEIR_FLEET" "$name" 500 100 "$long"
	wait_for shows "^  [0-9a-f]{16} $cut +100 +0 +0 +1 +0 [0-9]+  drained\$"
	expect 0 '' fleet undrain -l "$name" "$long"
	labelled=$(number_of "$cut")
	wait_for has "$labelled" 20
	first=$(member 1)
	second=$(member 2)
}

# A member makes a limit by the template that its name matches, whatever it is configured with.
templates()
{
	expect 0 '^PATTERN +CAPACITY +ALLOTMENT +RESERVED +MEMBERS +LEASE +LEARNING$' fleet template list
	[ "$(wc -l <"$work/out")" = 1 ] || complain "templates: $(cat "$work/out")"
	expect 0 '"templates": \[\]' fleet template list --json
	one_line 1 '^weir: web-\*: It is not there yet, and needs a capacity' fleet template set 'web-*' lease=1
	expect 0 '' fleet template set 'web-*' capacity=60 lease=120
	expect 0 '' fleet template set '*' capacity=10 reserved=2 members=5 allotment=proportional lease=1.5 learning=2
	expect 0 '' fleet template set 'web-*' capacity=70
	expect 0 '^web-\* +70 fair +0 +0 +120\.?0*s +own$' fleet template list
	[ "$(awk 'NR > 1 { print $1 }' "$work/out" | paste -s -d ' ')" = '* web-*' ] ||
		complain "templates: $(cat "$work/out")"
	expect 0 '^\* +10 proportional +2 +5 +1.50s +2.00s$' fleet template show '*'
	expect 0 '"pattern": "web-\*",' fleet template show 'web-*' --json
	expect 0 '"capacity": 70,' fleet template show 'web-*' --json
	expect 0 '"learning_period_seconds": 2.0' fleet template list --json
	expect 0 '^web-7 +web-\* +70 ' fleet template match web-7 db
	expect 0 '^db +\* +10 ' fleet template match web-7 db
	expect 0 '"name": "db"' fleet template match --json db
	one_line 1 '^weir: a/b: A name has 1 to 200' fleet template match a/b
	one_line 1 '^weir: a/b: A pattern has 1 to 200' fleet template show a/b
	one_line 1 '^weir: a/b: A pattern has 1 to 200' fleet template set a/b capacity=1
	one_line 1 '^weir: web: There is no such template' fleet template show web
	one_line 1 '^weir: web: There is no such template' fleet template remove web
	one_line 1 '^weir: \*: What is reserved for all members is above' fleet template set '*' capacity=9
	hold c 5 "$WEIR_FLEET" web-7 1 1
	wait_for says 'Configured with capacity 1, where the limit has capacity 70' fleet show web-7
	expect 0 '^web-7: capacity 70, ' fleet show web-7
	expect 0 '' fleet template set 'web-*' capacity=80
	expect 0 '^web-7: capacity 70, ' fleet show web-7
	exec 5>&-
	wait "$c"
	expect 0 '' fleet remove web-7
	expect 0 '' fleet template remove '*'
	one_line 1 '^weir: db: No template matches' fleet template match db
	expect 0 '^web-7 +web-\* +80 ' fleet template match web-7
	expect 0 '' fleet template remove --all
	expect 0 '"templates": \[\]' fleet template list --json
	expect 0 '' fleet template remove --all
}

# A password is in a file or in the environment; one in the arguments is blanked out.
passwords()
{
	need redis-cli
	at=127.0.0.1:$port
	redis-cli -p "$port" config set requirepass topsecret >/dev/null
	one_line 1 '^weir: Redis reports an error: NOAUTH' fleet list
	echo topsecret >"$work/password"
	expect 0 "^$name " fleet list -a "redis://$at?password-file=$work/password"
	export WEIR_PASSWORD=topsecret
	expect 0 "^$name " fleet list -a "redis://$at?password-env=WEIR_PASSWORD"
	unset WEIR_PASSWORD
	one_line 1 '^weir: The environment variable for the password is not' \
		fleet list -a "redis://$at?password-env=WEIR_PASSWORD"
	"$weir" fleet list -i 3600 -a "redis://default:topsecret@$at" >"$work/listed" 2>&1 &
	lister=$!
	wait_for grep -q "^$name " "$work/listed"
	tr '\0' ' ' <"/proc/$lister/cmdline" >"$work/arguments"
	grep -q 'default:\*\*\*\*\*\*\*\*\*@' "$work/arguments" || complain "arguments: $(cat "$work/arguments")"
	kill "$lister"
}

if [ "$store" = shm ]; then
	export WEIR_FLEET="shm:$base"
	one_line 1 "^weir: $base: there is no such store" fleet list
	[ ! -e "/dev/shm$base" ] || complain 'a store was made by looking at it'
	: >"/dev/shm$base"
	one_line 1 "^weir: $base: contains no store" fleet list
	head -c 100000 /dev/urandom >"/dev/shm$base"
	one_line 1 "^weir: $base: not a store of this version" fleet list
	rm "/dev/shm$base"
	hold c 5 "$WEIR_FLEET" other 1 1
	wait_for says '^other +1 ' fleet list
	exec 5>&-
	wait "$c"
	expect 0 '' fleet remove other
	make_and_set
else
	port=$(free_port)
	one_line 1 '^weir: ' fleet list -a "$store://127.0.0.1:$port"
	start_server
	nothing_there
	make_and_set
fi
templates
members
json
openmetrics
drain
drain_labelled
drain_restarted
rewind
[ "$store" != shm ] || live
resize
leave
[ "$store" != redis ] || passwords
exit $failed
