# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Overloads something without a limiter and then with one limit or several, and shows what came
# of it: a table, a verdict in numbers, and a picture. scripts/demo and the demos of the adapters
# source this, from the project's root, say what is to be overloaded, and call overload "$@".
#
# Why the figures can be trusted. The load is open loop: generators open connections
# by the clock, one for each request, whatever becomes of those before it. So a slow
# server does not slow its clients down, and a request that should have been sent
# while it stalled was sent, and its wait is measured (no coordinated omission).
# Three things could still hide waiting:
#   - a generator that falls behind: the kernel's count of connections is compared
#     with the plan, and a warning printed;
#   - a listen backlog that overflows, as latency is measured from the moment that the
#     connection stands: it is long, and a warning printed if connecting took long;
#   - a request that was never answered, which is in no log: it is put back into all
#     figures, as one that took as long as its client had patience.
# Several generators with periods of their own send together, so that requests clump
# as those of independent clients do. Server and generators share no core.
#
# A demo sets these:
#   purpose        a sentence for --help
#   subject        what is overloaded, for the picture: "HTTP server on SQLite"
#   groups         of scripts/install-packages
#   targets        of CMake, to be built
#   options        of CMake, an array; may be left out
#   keep           where --keep-figure copies picture and table to
#   own_usage      lines of --help for options of its own; may be left out
#   path           what is asked for; / unless set
# and defines these functions:
#   start_server RUN LIMIT   starts the server by launch, guarded by LIMIT, or unguarded if that is
#                  none. With RUN check it is stopped at once, with RUN capacity it is measured.
#   own_option NAME VALUE    takes an option of its own; fails if there is none. May be left out
#   make_load RUN LIMIT      may be left out. A program that limits its own calls makes the load by
#                  itself: it reads raw/RUN-plan.tsv, see plan_phases, and writes
#                  raw/RUN-requests.tsv, see all_requests, both in $out.
#   measure_capacity         may be left out. Sets capacity to answers a second, closed loop
# A program that shows its limiter writes raw/RUN-stats.tsv about every 100 ms: a line of column
# names, of which time_ms, limit, inflight, waiting and rss_kb are read, and lines of numbers.
# A program that says "in flight N" as it ends is held to 0.

export LC_ALL=C.UTF-8

limits=() options=() deadline=250 patience=2 overload=3 cores='' lengths=10,15,15
build=build-demo out=demo-out path=/ own_usage='' install=1 make=1 keep_figure=''

# Filled in below, for the functions of a demo: limits by run, clients' end of the machine.
declare -A limit_of capacity_of
runs=() server_pid='' port='' capacity='' server_cores='' load_core=''

fail()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

print_usage()
{
	echo "Usage: $0 [OPTION]...
$purpose Needs a Debian machine and
two minutes; installs the packages that are missing (as root, or with sudo).

  --limit LIMIT    the limit, with parameters or without (default elastic); may be given
                   several times: each is a run of its own
${own_usage:+$own_usage
}  --deadline MS    an answer later than this is worth nothing (default $deadline)
  --patience S     clients give up after this (default $patience)
  --overload X     requests in the overload phase, in capacities (default $overload)
  --seconds A,B,C  how long the three phases last (default $lengths)
  --cores N        for the server (default all but one, at most 4)
  --build DIR      where to build (default $build)
  --out DIR        where results go (default $out)
  --no-install     do not install anything
  --no-build       do not build either: use what is in --build
  --keep-figure    copy picture and table to $keep/
  --help           print this"
}

own_option()
{
	return 1
}

take_option()
{
	case $1 in
	--limit) limits+=("$2") ;;
	--deadline) deadline=$2 ;;
	--patience) patience=$2 ;;
	--overload) overload=$2 ;;
	--seconds) lengths=$2 ;;
	--cores) cores=$2 ;;
	--build) build=$2 ;;
	--out) out=$2 ;;
	*) own_option "$1" "$2" || fail "there is no option $1; see --help" ;;
	esac
}

need_whole()
{
	local number

	for number in "$@"; do
		[[ $number =~ ^[0-9]+$ ]] || fail "\"$number\" is no whole number"
	done
}

take_options()
{
	while [ $# -gt 0 ]; do
		case $1 in
		--help) print_usage; exit 0 ;;
		--no-install) install=''; shift; continue ;;
		--no-build) install='' make=''; shift; continue ;;
		--keep-figure) keep_figure=1; shift; continue ;;
		esac
		[ $# -ge 2 ] || fail "$1 is no option, or needs a value; see --help"
		take_option "$1" "$2"
		shift 2
	done
	need_whole "$deadline" "$patience" "${cores:-1}"
	[[ $overload =~ ^[0-9]+(\.[0-9]+)?$ ]] || fail "\"$overload\" is no number"
	[[ $lengths =~ ^[1-9][0-9]*(,[1-9][0-9]*){2}$ ]] || fail "\"$lengths\" is not three lengths"
	[ ${#limits[@]} -gt 0 ] || limits=(elastic)
}

# A run's name is its limit's, with a number where two are alike.
name_runs()
{
	local limit name i

	runs=(unlimited)
	limit_of[unlimited]=none
	for limit in "${limits[@]}"; do
		[[ $limit =~ ^[a-z][a-z0-9_]*(:|$) ]] || fail "\"$limit\" is no limit"
		name=${limit%%:*}
		i=2
		while [ -n "${limit_of[$name]:-}" ]; do
			name=${limit%%:*}-$((i++))
		done
		runs+=("$name")
		limit_of[$name]=$limit
	done
}

# Seconds of each phase, and its load in capacities.
phases=(half overload again)
declare -A seconds load

set_phases()
{
	IFS=, read -r 'seconds[half]' 'seconds[overload]' 'seconds[again]' <<<"$lengths"
	duration=$((seconds[half] + seconds[overload] + seconds[again]))
	load=([half]=0.5 [overload]=$overload [again]=0.5)
}

# Relative periods of the generators: no two have a short common multiple.
spread=(0.80 0.87 0.95 1.04 1.14 1.27)

calc()
{
	awk "BEGIN { printf \"%.${2:-0}f\", ($1) }"
}

now_us()
{
	echo "${EPOCHREALTIME/[.,]/}"
}

sleep_until()
{
	local left=$(($1 - $(now_us)))

	[ $left -le 0 ] || sleep "$(calc "$left / 1e6" 6)"
}

stop_server()
{
	[ -n "$server_pid" ] || return 0
	kill "$server_pid" 2>/dev/null || true
	for _ in {1..100}; do
		kill -0 "$server_pid" 2>/dev/null || break
		sleep 0.1
	done
	kill -9 "$server_pid" 2>/dev/null || true
	wait "$server_pid" 2>/dev/null || true
	server_pid=''
}

clean_up()
{
	local children

	stop_server
	children=$(jobs -p)
	# shellcheck disable=SC2086
	[ -z "$children" ] || kill $children 2>/dev/null || true
}

# The cores this process may use, one a line.
usable_cores()
{
	taskset -pc $$ | sed 's/.*: //' | tr ',' '\n' | awk -F- '{
		for (i = $1; i <= $NF; i++)
			print i
	}'
}

assign_cores()
{
	local usable count

	mapfile -t usable < <(usable_cores)
	count=${#usable[@]}
	load_core=${usable[count - 1]}
	if [ "$count" = 1 ]; then
		echo "There is one core only: server and generators disturb each other."
		server_cores=$load_core
		cores=1
		return
	fi
	[ -n "$cores" ] || cores=$((count > 5 ? 4 : count - 1))
	[ "$cores" -lt "$count" ] || fail "--cores must leave one of $count for the generators"
	server_cores=$(IFS=,; echo "${usable[*]:0:cores}")
}

build_targets()
{
	cmake -S . -B "$build" -DWEIR_TESTS=OFF -DWEIR_BENCH=OFF "${options[@]}" >"$out/build.log" ||
		fail "cmake failed; its log is $out/build.log"
	# shellcheck disable=SC2086
	cmake --build "$build" --parallel --target $targets >>"$out/build.log" 2>&1 ||
		fail "the build failed; its log is $out/build.log"
}

# launch RUN PROGRAM [ARGUMENT]...: a server that says "listening on 127.0.0.1:PORT", on the
# server's cores. It may be a script that starts something else, if it ends that when it is ended.
launch()
{
	local said=$out/raw/$1-server.txt

	shift
	[ -x "$1" ] || fail "$1 was not built; see $out/build.log"
	: >"$said"
	taskset -c "$server_cores" "$@" >>"$said" &
	server_pid=$!
	for _ in {1..300}; do
		port=$(sed -n 's/^listening on 127.0.0.1://p' "$said")
		[ -z "$port" ] || return 0
		kill -0 "$server_pid" 2>/dev/null || break
		sleep 0.1
	done
	fail "the server did not start"
}

# Answers a second, with just enough clients to keep the server busy: the best two
# seconds of eight, as all that disturbs a measurement only makes it lower. (Fewer than eight where
# the phases are short.)
measure_capacity()
{
	local length=$((seconds[half] < 8 ? seconds[half] + 1 : 8))

	rm -f "$out/raw/capacity.log"
	"${generator[@]}" -c $((2 * cores)) --warm-up-time=1 -D "$length" \
		--log-file="$out/raw/capacity.log" "http://127.0.0.1:$port$path" \
		>"$out/raw/capacity.txt"
	capacity=$(awk '$2 == 200 { count[int(($1 + $3) / 1e6)]++ }
		END { for (second in count) {
			sum = count[second] + count[second + 1]
			best = sum > best ? sum : best
		}
		print best / 2 }' "$out/raw/capacity.log")
}

# Sets capacity, of a server that is started for it.
find_capacity()
{
	start_server capacity none
	measure_capacity
	stop_server
	[ "$(calc "${capacity:-0} > 0")" = 1 ] || fail "the server does not answer"
}

# The load of a run: phase, start (us, of the epoch), seconds, requests a second.
plan_phases()
{
	local start=$1 phase

	for phase in "${phases[@]}"; do
		printf '%s\t%s\t%s\t%s\n' "$phase" "$start" "${seconds[$phase]}" \
			"$(calc "$capacity * ${load[$phase]}" 3)"
		start=$((start + seconds[$phase] * 1000000))
	done
}

# One row a generator: period in ms, connections at a time, how many in all: one burst at least, as a
# slow server may be due less than that.
plan_generators()
{
	printf '%s\n' "${spread[@]}" | awk -v rate="$1" -v seconds="$2" -v n=${#spread[@]} '{
		burst = int(10 * rate / 1000 / n) + 1
		period = int(1000 * n * burst / rate * $1 + 0.5)
		bursts = int(seconds * 1000 / period)
		print period, burst, (bursts > 0 ? bursts : 1) * burst
	}'
}

# TCP connections that this machine has begun to open so far.
connections_opened()
{
	awk '/^Tcp:/ && !column { for (i = 1; i <= NF; i++) if ($i == "ActiveOpens") column = i; next }
		/^Tcp:/ { print $column }' /proc/net/snmp
}

# generate_phase RUN PHASE START SECONDS RATE: opens connections from START on, for as long as the
# phase lasts; answers may come later, while the next phase runs.
generate_phase()
{
	local run=$1 phase=$2 start=$3 length=$4 total=0 opened
	local period burst count i=0

	sleep_until "$start"
	opened=$(connections_opened)
	while read -r period burst count; do
		i=$((i + 1))
		total=$((total + count))
		echo "$phase $i $(now_us) $period $burst $count" >>"$out/raw/$run-generators"
		"${generator[@]}" -r "$burst" --rate-period="${period}ms" -n "$count" -c "$count" \
			-T "${patience}s" --log-file="$out/raw/$run-$phase-$i.log" \
			"http://127.0.0.1:$port$path" >"$out/raw/$run-$phase-$i.txt" 2>&1 &
	done < <(plan_generators "$5" "$length")
	sleep_until $((start + length * 1000000))
	opened=$(($(connections_opened) - opened))
	[ "$(calc "$opened >= 0.98 * $total")" = 1 ] ||
		echo "warning: $run, $phase: only $opened of $total requests were sent in time"
}

# The longest that a connect took, in ms, as the generators report it.
slowest_connect()
{
	cat "$out/raw/$1"-*-?.txt | awk '/^time for connect:/ {
		ms = $5 + 0
		if ($5 ~ /us$/)
			ms /= 1000
		else if ($5 !~ /ms$/)
			ms *= 1000
		if (ms > max)
			max = ms
	} END { printf "%.0f", max }'
}

# Every request of a run, answered or not: phase, start (us, of the epoch), status (0: not
# answered), latency (us).
all_requests()
{
	local phase i launch period burst count log

	while read -r phase i launch period burst count; do
		log=$out/raw/$1-$phase-$i.log
		sort -n "$log" | awk -f scripts/overload-complete.awk -v phase="$phase" \
			-v launch="$launch" -v period="${period}000" -v burst="$burst" \
			-v total="$count" -v patience="${patience}000000" -v logged="$(wc -l <"$log")"
	done <"$out/raw/$1-generators"
}

make_load()
{
	local run=$1 phase start length rate slowest pid

	while read -r phase start length rate; do
		generate_phase "$run" "$phase" "$start" "$length" "$rate"
	done <"$out/raw/$run-plan.tsv"
	for pid in $(jobs -p); do
		[ "$pid" = "$server_pid" ] || wait "$pid" || true
	done
	all_requests "$run" >"$out/raw/$run-requests.tsv"
	slowest=$(slowest_connect "$run")
	[ "$slowest" -le $((deadline / 5)) ] ||
		echo "warning: $run: a connect took $slowest ms, which no latency includes"
}

run_once()
{
	local run=$1 limit=$2

	echo "Running $run: $limit"
	start_server "$run" "$limit"
	plan_phases $(($(now_us) + 1000000)) >"$out/raw/$run-plan.tsv"
	make_load "$run" "$limit"
	stop_server
	! grep -h 'in flight' "$out/raw/$run-server.txt" | grep -qv 'in flight 0$' ||
		fail "permits were out at the end; see $out/raw/$run-server.txt"
}

# stats RUN COLUMN...: these columns of what the run's program wrote of itself.
stats()
{
	local file=$out/raw/$1-stats.tsv

	shift
	[ ! -e "$file" ] || awk -F '\t' -v wanted="$*" 'BEGIN { n = split(wanted, names, " ") }
		NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
		{ for (i = 1; i <= n; i++)
			printf "%s%s", (names[i] in column) ? $column[names[i]] : "-", i < n ? "\t" : "\n" }' \
		"$file"
}

# All runs have the same load. But a machine that has other users changes within minutes, so what a
# run serves is compared with the capacity that was measured just before it and just after it.
run_all()
{
	local planned=$capacity before=$capacity run

	for run in "${runs[@]}"; do
		run_once "$run" "${limit_of[$run]}"
		evaluate "$run"
		find_capacity
		capacity_of[$run]=$(calc "($before + $capacity) / 2" 1)
		[ "$(calc "$capacity > 0.9 * $before && $capacity < 1.1 * $before")" = 1 ] ||
			echo "warning: $run: the capacity was $before before, and $capacity afterwards:" \
				"something else uses this machine"
		before=$capacity
		capacity=$planned
	done
}

# Peak resident memory in MB, by phase.
peak_memory()
{
	local phase start length rate

	while read -r phase start length rate; do
		start=$((start / 1000))
		stats "$1" time_ms rss_kb | awk -v from="$start" \
			-v until=$((start + length * 1000)) -v phase="$phase" '
			$1 >= from && $1 < until && $2 > max { max = $2 }
			END { printf max ? "%s\t%.0f\n" : "%s\t-\n", phase, max / 1024 }'
	done <"$out/raw/$1-plan.tsv"
}

summarise()
{
	sort -t "$(printf '\t')" -k1,1 -k3,3n |
		awk -f scripts/overload-summary.awk -v deadline="${deadline}000" "$1" -
}

# Figures of a run, by phase and by half second, as tab-separated files.
evaluate()
{
	local run=$1 start

	start=$(cut -f 2 "$out/raw/$run-plan.tsv" | head -n 1)
	peak_memory "$run" >"$out/raw/$run-memory"
	{
		printf 'phase\toffered\tgood\trefused\tunanswered\tp50_ms\tp99_ms\tpeak_mb\n'
		cut -f 1,3,4 "$out/raw/$run-requests.tsv" |
			summarise <(cut -f 1,3 "$out/raw/$run-plan.tsv") |
			sort | join -t "$(printf '\t')" - <(sort "$out/raw/$run-memory")
	} >"$out/$run-phases.tsv"
	{
		printf 'second\toffered\tgood\trefused\tunanswered\tp50_ms\tp99_ms\n'
		awk -v start="$start" -v end="$duration" '{
			second = int(($2 - start) / 500000) / 2
			if (second < end)
				printf "%.1f\t%s\t%s\n", second, $3, $4
		}' "$out/raw/$run-requests.tsv" |
			summarise <(seq -f '%.1f' 0 0.5 "$duration" | sed 's/$/\t0.5/') |
			sort -n
	} >"$out/$run-seconds.tsv"
	{
		printf 'second\tlimit\tinflight\twaiting\trss_mb\n'
		stats "$run" time_ms limit inflight waiting rss_kb | awk -v start="$start" '
			$1 * 1000 >= start { printf "%.2f\t%s\t%s\t%s\t%.1f\n", $1 / 1000 - start / 1e6,
				$2, $3, $4, $5 / 1024 }'
	} >"$out/$run-server.tsv"
}

# field RUN PHASE COLUMN
field()
{
	awk -F '\t' -v phase="$2" -v column="$3" '$1 == phase { print $column }' "$out/$1-phases.tsv"
}

print_table()
{
	local run phase around=''

	for run in "${runs[@]}"; do
		around+="${around:+, }$run ${capacity_of[$run]}"
	done
	echo "Capacity: $capacity answers/s on $cores core(s), closed loop. Load: half of it, $overload" \
		"times it, half of it."
	echo "Mean of the capacities before and after each run: $around."
	echo "In time: within $deadline ms. Latencies are of all requests not refused; one that a client" \
		"gave up counts as ${patience}000 ms."
	echo
	printf '%-10s %-9s %9s %9s %9s %9s %8s %8s %8s\n' run phase 'sent/s' 'in time/s' \
		'refused/s' 'gave up/s' 'p50 ms' 'p99 ms' 'peak MB'
	for run in "${runs[@]}"; do
		for phase in "${phases[@]}"; do
			# shellcheck disable=SC2046,SC2183
			printf '%-10s %-9s %9s %9s %9s %9s %8s %8s %8s\n' "$run" \
				$(grep "^$phase	" "$out/$run-phases.tsv")
		done
	done
	echo
	print_verdict unlimited "Without a limiter"
	for run in "${runs[@]:1}"; do
		print_verdict "$run" "With ${limit_of[$run]}"
	done
}

print_verdict()
{
	local good p99 p99_half

	good=$(field "$1" overload 3)
	p99=$(field "$1" overload 7)
	p99_half=$(field "$1" half 7)
	[ "$p99" != - ] && [ "$p99_half" != - ] || p99=0 p99_half=1
	echo "$2, under overload: $(calc "100 * $good / ${capacity_of[$1]}") % of capacity in time," \
		"p99 $(calc "$p99 / $p99_half" 1) times that at half load."
}

draw()
{
	local run good=''

	for run in "${runs[@]}"; do
		good+="$(field "$run" overload 3) "
	done
	gnuplot -e "out='$out'; runs='${runs[*]}'; good='$good'; subject='$subject'" \
		-e "deadline=$deadline; patience=${patience}000; capacity=$capacity" \
		-e "overload='$overload'; from=${seconds[half]}" \
		-e "to=$((seconds[half] + seconds[overload])); end=$duration" \
		plots/demo.gp
}

prepare()
{
	rm -rf "$out/raw"
	mkdir -p "$out/raw"
	ulimit -n "$(ulimit -Hn)"
	[ "$(cat /proc/sys/net/core/somaxconn)" -ge 1024 ] ||
		echo "warning: net.core.somaxconn is low: connections may wait unseen"
	[ -z "$make" ] || build_targets
	assign_cores
	generator=(timeout 120 taskset -c "$load_core" h2load --h1)
	echo "Server on core(s) $server_cores, load generators on core $load_core."
}

overload()
{
	local run

	take_options "$@"
	name_runs
	set_phases
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	# shellcheck disable=SC2086
	[ -z "$install" ] || scripts/install-packages $groups
	prepare
	for run in "${runs[@]}"; do
		start_server check "${limit_of[$run]}"
		stop_server
	done
	find_capacity
	echo "Capacity: $capacity answers/s."
	run_all
	echo
	print_table | tee "$out/demo.txt"
	draw
	echo
	echo "Wrote $out/demo.png, $out/demo.svg, $out/demo.txt and the numbers beside them."
	if [ -n "$keep_figure" ]; then
		cp "$out/demo.png" "$out/demo.txt" "$keep/"
	fi
}
