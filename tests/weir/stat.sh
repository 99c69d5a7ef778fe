#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# stat.sh WEIR HOLDER - what stat prints of limiters, and of what is none.
set -u
. "$(dirname "$0")/common.sh"

hold a 3 "$base-a" vegas:initial=20 live=0.6 batch=0.3
tell a 3 acquire 3 live
tell a 3 acquire 2 batch
tell a 3 drop 1
tell a 3 calls 200 # longer than a window

table()
{
	expect 0 "^$base-a +[0-9]+ +4 +0 +[0-9.]+ +205 +0 +1 +[1-9]\$" stat "$base-a"
	expect 0 "^$base-a +[0-9]+ +4 " stat "${base#/}-a"
	expect 0 "^$base-a " stat
	expect 0 '^  live +[0-9]+ +3 +0 +- +3 +0 +0 +-$' stat -p "$base-a"
	expect 0 "^  #1 +pid $a +alive +4 calls +4 permits +0 detached" stat -m "$base-a"
	tell a 3 serve
	wait_for has_rates
	[ "$(grep -c '^NAME .*ADMIT/S' "$work/out")" = 2 ] || complain 'not two tables'
	tell a 3 calls 1
}

# Rates in both tables: on a busy machine the holder may have done nothing for an interval.
has_rates()
{
	"$weir" stat -i 0.3 -c 2 "$base-a" >"$work/out" || fail 'stat -i failed'
	[ "$(grep -cE "^$base-a +[0-9]+ +[45] +0 +[0-9.]+ +[1-9][0-9]* +0 +0 +[1-9]\$" "$work/out")" = 2 ]
}

json()
{
	command -v jq >/dev/null || { echo 'jq is missing: JSON is not read'; return; }
	"$weir" stat --json "$base-a" >"$work/json" || complain 'stat --json failed'
	jq -e --arg name "$base-a" --argjson pid "$a" '.limiters | length == 1 and (.[0] |
		.name == $name and .limit >= 1 and .inflight == 4 and .shadow == false and
		.config.limit == "vegas" and (.config.algorithm | startswith("vegas:initial=20,")) and
		.config.limit_max == 200 and .config.queue == 10 and .totals.dropped == 1 and
		.rtt_seconds > 0 and (.numbers | has("estimate")) and (has("rates") | not) and
		(.partitions | map(.name) == ["unknown", "live", "batch"]) and
		.partitions[1].share == 0.6 and .partitions[1].inflight == 3 and
		.partitions[2].dropped == 1 and any(.processes[]; .pid == $pid and .permits == 4))' "$work/json" >/dev/null ||
		complain "JSON is not so: $(cat "$work/json")"
	tell a 3 serve
	wait_for has_json_rates
	tell a 3 calls 1
	[ "$(wc -l <"$work/json")" = 2 ] || complain 'not an object a line'
}

has_json_rates()
{
	"$weir" stat --json -i 0.3 -c 2 "$base-a" >"$work/json" || fail 'stat --json -i failed'
	[ "$(jq -r '.limiters[0].rates.admitted > 0' "$work/json" | grep -c true)" = 2 ]
}

openmetrics()
{
	"$weir" stat --openmetrics "$base-a" >"$work/metrics" || complain 'stat --openmetrics failed'
	grep -qxF "weir_inflight{name=\"$base-a\"} 4" "$work/metrics" ||
		complain "no metric: $(cat "$work/metrics")"
	[ "$(tail -n 1 "$work/metrics")" = '# EOF' ] || complain 'no end'
	command -v promtool >/dev/null || return
	mkdir -p "$work/store/wal"
	sed '/^#/!s/$/ 1700000000/' "$work/metrics" >"$work/timed"
	promtool tsdb create-blocks-from openmetrics "$work/timed" "$work/store" >"$work/log" 2>&1 ||
		complain "promtool does not read it: $(cat "$work/log")"
}

# Passed over in the list; a sentence for who asks by name.
no_limiters()
{
	here=/dev/shm$base
	echo hello >"$here-text"
	: >"$here-empty"
	head -c 100000 /dev/urandom >"$here-noise"
	head -c 5000 "$here-a" >"$here-cut"
	cp "$here-a" "$here-damaged"
	printf 'x' | dd of="$here-damaged" bs=1 seek=120 conv=notrunc 2>/dev/null
	cp "$here-a" "$here-secret"
	chmod 0 "$here-secret"
	mkfifo "$here-fifo"
	mkdir "$here-folder"
	ln -s /dev/zero "$here-link"
	for bad in text empty noise cut fifo folder link; do
		expect 0 "^$base-a " stat
		! grep -q -e "$base-$bad" "$work/out" || complain "$bad is in the list"
		one_line 1 "^weir: $base-$bad: " stat "$base-$bad"
	done
	one_line 1 "^weir: $base-damaged: The shared limiter is damaged" stat "$base-damaged"
	expect 0 "^weir: $base-damaged: The shared limiter is damaged" stat
	grep -q "^$base-a " "$work/out" || complain 'one that is damaged hides others'
	[ "$(id -u)" = 0 ] || one_line 1 "$base-secret: cannot be opened: Permission denied" stat "$base-secret"
	expect 1 "^$base-a " stat "$base-a" "$base-missing"
	rm -rf "$here-"[b-z]*
}

# Names are anybody's: they do not command the terminal, and JSON and OpenMetrics stay whole.
odd_names()
{
	odd=$(printf '%s-odd\033[2J\n\377' "$base")
	hold b 4 "$odd" fixed
	expect 0 "^$base-odd\\\\x1b\[2J\\\\x0a\\\\xff " stat
	LC_ALL=C "$weir" stat "$odd" | grep -q "x1b" || complain 'not in the C locale'
	"$weir" stat --json "$odd" >"$work/json" || complain 'JSON of an odd name'
	! command -v jq >/dev/null || jq -e '.limiters[0].name | contains("xff")' "$work/json" >/dev/null ||
		complain "the name in JSON: $(cat "$work/json")"
	expect 0 '^weir_limit\{name=".*xff' stat --openmetrics "$odd"
	exec 4>&-
	wait "$b"
	one_line 1 'No such file' stat "$odd"
}

# unsafe FILE: whether there are controls in it, or characters that turn text around
unsafe()
{
	LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]\|\302\233\|\342\200\256')" "$1"
}

# The same goes for text inside a limiter.
odd_partitions()
{
	hold b 4 "$base-odd" fixed "$(printf 'a\033[31mred')=0.1" "$(printf '\302\23331m')=0.1" \
		"$(printf '\342\200\256evil\177')=0.1" "$(printf '\303\251t\303\251')=0.1"
	for format in -p --json --openmetrics; do
		"$weir" stat $format "$base-odd" >"$work/odd" 2>&1 || complain "$format: $(cat "$work/odd")"
		! unsafe "$work/odd" || complain "$format commands the terminal: $(od -c "$work/odd")"
	done
	grep -qF 'partition="a\\x1b[31mred"' "$work/odd" || complain "a label: $(cat "$work/odd")"
	grep -qF "partition=\"$(printf '\303\251t\303\251')\"" "$work/odd" || complain "no letters: $(cat "$work/odd")"
	"$weir" stat --json "$base-odd" >"$work/json"
	! command -v jq >/dev/null || jq -e --arg esc "$(printf '\033')" --arg del "$(printf '\177')" \
		'.limiters[0].partitions | .[1].name == "a\($esc)[31mred" and (.[3].name | endswith("evil\($del)"))' \
		"$work/json" >/dev/null || complain "names in JSON: $(cat "$work/json")"
	one_line 1 'There is no partition|there is no such partition' set "$base-odd" "$(printf 'x\033[2Jy').share=0.1"
	! unsafe "$work/out" || complain "set commands the terminal: $(od -c "$work/out")"
	exec 4>&-
	wait "$b"
}

# A limiter that is made anew under its name is another one: no rate is made of both.
made_again()
{
	hold c 5 "$base-c" fixed
	tell c 5 calls 50
	"$weir" stat --json -i 0.3 -c 3 "$base-c" >"$work/json" &
	reader=$!
	wait_for has_begun
	tell c 5 again
	wait $reader || complain 'stat of one that is made anew'
	[ "$(wc -l <"$work/json")" = 3 ] || complain 'not three objects'
	! command -v jq >/dev/null ||
		[ "$(jq '.limiters[0].rates.admitted < 1e6' "$work/json" | grep -c true)" = 3 ] ||
		complain "a rate of two limiters: $(cat "$work/json")"
	exec 5>&-
	wait "$c"
}

has_begun()
{
	[ "$(wc -l <"$work/json")" -ge 1 ]
}

# Truncating the file while it is read, which raises SIGBUS, ends the reading, not the program.
cut_while_read()
{
	size=$(wc -c <"/dev/shm$base-a")
	cp "/dev/shm$base-a" "/dev/shm$base-d"
	while kill -0 $$ 2>/dev/null && [ ! -e "$work/enough" ]; do
		truncate -s 4096 "/dev/shm$base-d"
		truncate -s "$size" "/dev/shm$base-d"
		dd if="/dev/shm$base-a" of="/dev/shm$base-d" conv=notrunc bs=65536 2>/dev/null
	done &
	cutter=$!
	for format in '' --json --openmetrics; do
		i=0
		while [ $i -lt 30 ]; do
			# Without a format there is no argument.
			# shellcheck disable=SC2086
			"$weir" stat $format "$base-d" >"$work/out" 2>&1
			status=$?
			[ $status -le 1 ] || fail "status $status of one that is cut: $(cat "$work/out")"
			i=$((i + 1))
		done
	done
	: >"$work/enough"
	wait $cutter
	rm "/dev/shm$base-d"
}

full_disk()
{
	[ -w /dev/full ] || return
	"$weir" stat "$base-a" >/dev/full 2>"$work/out" && complain 'nothing said of a full disk'
	grep -q 'standard output: ' "$work/out" || complain "full disk: $(cat "$work/out")"
}

table
json
openmetrics
no_limiters
odd_names
odd_partitions
made_again
cut_while_read
full_disk
exec 3>&-
wait "$a" || complain 'the holder failed'
exit $failed
