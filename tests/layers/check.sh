#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check.sh SOURCE_DIR - which folder may include which, and how atomic operations are written.
#
# The layers are what lets a limit be tested without a thread and a simulation run without a clock.
# A compiler does not see them, so this does.
set -u

here=$(cd "$(dirname "$0")" && pwd)
cd "$1" || exit 2

include='^[[:space:]]*#[[:space:]]*include[[:space:]]*'
outside='bench cli adapters fleet examples tests/sim tests/weir'

# sources DIR...: C and C++ files below, as far as the directories exist. No name has blanks.
sources()
{
	for dir; do
		[ ! -d "$dir" ] || find "$dir" -name '*.[ch]' -o -name '*.[ch]pp'
	done
}

# search PATTERN FILE...: file:line:text. The null file keeps it from reading the terminal.
search()
{
	pattern=$1
	shift
	grep -nE "$pattern" /dev/null "$@"
}

# about TEXT: puts the rule before the lines that break it; without any it is silent.
about()
{
	lines=$(cat)
	[ -z "$lines" ] || printf '%s:\n%s\n' "$1" "$lines"
}

# Includes that rooms.txt does not allow. A header without a folder is one of the same folder.
# shellcheck disable=SC2046
strangers()
{
	search "$include\"" $(sources lib limits fleet cli bench) |
		awk -F: -v table="$here/rooms.txt" '
		BEGIN {
			while ((getline line < table) > 0) {
				if (line ~ /^#/ || line !~ /:/)
					continue
				room = substr(line, 1, index(line, ":") - 1)
				n = split(substr(line, index(line, ":") + 1), names, " ")
				known[room] = 1
				for (i = 1; i <= n; i++) {
					open[room, names[i]] = 1
					sub(/\/[^\/]*[.]h$/, "", names[i])
					if (!(names[i] in known))
						print "rooms.txt: " room " names " names[i] ", which is not above it"
				}
			}
		}
		{
			room = $1
			sub(/\/[^\/]*$/, "", room)
			if (!(room in known)) {
				print $1 ": its folder is not in rooms.txt"
				next
			}
			split($0, quoted, "\"")
			file = folder = quoted[2]
			if (file !~ /\//)
				next
			folder = file
			sub(/\/[^\/]*$/, "", folder)
			if (folder != room && !((room, folder) in open) && !((room, file) in open))
				print
		}'
}

# shellcheck disable=SC2046,SC2086
check()
{
	strangers |
		about "tests/layers/rooms.txt does not let the folder include this"

	search "$include" $(sources limits) |
		grep -vE '<(weir/(base|limits?)|errno|float|math|stdbool|stddef|stdint|string)\.h>|".*"' |
		about "limits/ may include the headers for authors of limits and pure C only"

	search '\bweir_(aimd|bbr|brpc|cautious|codel|elastic|envoy|failsafe|fixed|gradient|gradient2|hillclimb|protego|settable|vector|vegas)\b' \
		$(sources lib) |
		about "lib/ may not know a limit by name"

	search "$include" lib/extra/executor.c lib/extra/worker.[ch] |
		grep -vE '<[a-z_/]+\.h>|"lib/extra/worker.h"' |
		about "the executor is a user of the limiter: public headers only"

	search "$include\"" $(sources lib/metrics) |
		grep -v '"lib/metrics/[a-z]*\.h"' |
		about "metrics are a user of the limiter: public headers only"

	search "$include\"(lib|limits)/" $(sources $outside) |
		about "only public headers here"

	search "$include<ck_" $(sources lib limits include $outside) |
		grep -vE '^(lib/(base/park|extra/registry)\.c|bench/micro/)' |
		about "only lib/base/park.c and lib/extra/registry.c may use Concurrency Kit"

	# Compilers leave them out, or turn them into loads and stores, and the order they were for
	# is lost.
	search 'atomic_fetch_(add|sub|or|xor)(_explicit)?\([^;]*, *0[uUlL]*( *\)|, *memory_order)|^[[:space:]]*(\(void\) *)?atomic_exchange[^;]*memory_order_(relaxed|release)' \
		$(sources lib fleet adapters cli) |
		about "an atomic read-modify-write must change the value, and the result of an exchange must be used"

	find plots -name '*.gp' -exec grep -nE '[a-z]\.[ch]\b' /dev/null {} + |
		about "plots/ read TSV and know no C"

	search '\batomic_(load|store|exchange|fetch_[a-z]+|compare_exchange_[a-z]+)[[:space:]]*\(' \
		$(sources lib) |
		about "an atomic operation without its memory order"

	search 'memory_order_seq_cst' $(sources lib) |
		about "lib/ needs no sequential consistency"
}

broken=$(check)
[ -z "$broken" ] && exit 0
printf '%s\n' "$broken"
exit 1
