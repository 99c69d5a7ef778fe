#!/bin/sh
# check.sh SOURCE_DIR - who may know whom.
#
# The layers are what lets a limit be tested without a thread and a simulation
# run without a clock. A compiler does not see them, so this does.
set -u

cd "$1" || exit 2

include='^[[:space:]]*#[[:space:]]*include[[:space:]]*'
outside='bench examples adapters fleet tool tests/sim tests/weir'

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

# Headers of lib/ and limits/ that are found by a path of the compiler's, not of the text; but those
# of a name that there is outside, too.
# shellcheck disable=SC2046,SC2086
private_headers()
{
	theirs=$(sources $outside | sed 's|.*/||')
	for header in $(sources lib limits | grep '\.h$'); do
		name=$(basename "$header")
		echo "$theirs" | grep -qx "$name" || search "${include}[\"<]${name}[\">]" $(sources $outside)
	done
}

# shellcheck disable=SC2046,SC2086
check()
{
	search "$include" $(sources limits) |
		grep -vE '<(weir/(base|limits?)|errno|math|stdbool|stddef|stdint|string)\.h>|"(belief|common|holding|swings)\.h"' |
		about "limits/ may include its own headers, the author's header and pure C only"

	search "$include.*limits/" $(sources lib) |
		about "lib/ may include nothing of limits/"

	search '\bweir_(aimd|bbr|brpc|cautious|codel|elastic|envoy|failsafe|fixed|gradient|gradient2|hillclimb|settable|vector|vegas)\b' \
		$(sources lib) |
		about "lib/ may not know a limit by name"

	search "$include" lib/executor.c lib/worker.[ch] | grep -vE '<[a-z_/]+\.h>|"lib/worker.h"' |
		about "the executor uses the limiter as everybody does: public headers only"

	search "$include\"[^\"]*(lib|limits)/" $(sources $outside) |
		about "only public headers here"

	private_headers |
		about "a private header under a short name"

	search "$include\"" lib/metrics.c |
		about "lib/metrics.c may include public headers only"

	search "$include<ck_" $(sources lib limits include $outside) |
		grep -vE '^(lib/(park|registry)\.c|bench/micro/)' |
		about "only lib/park.c and lib/registry.c may use Concurrency Kit"

	# Compilers leave them out, or turn them into loads and stores, and the order they were for
	# is lost.
	search 'atomic_fetch_(add|sub|or|xor)(_explicit)?\([^;]*, *0[uUlL]*( *\)|, *memory_order)|^[[:space:]]*(\(void\) *)?atomic_exchange[^;]*memory_order_(relaxed|release)' \
		$(sources lib fleet adapters tool) |
		about "an atomic operation that modifies is to change something, and an exchange to be looked at"

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
