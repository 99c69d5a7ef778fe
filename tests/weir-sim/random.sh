#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# random.sh WEIR_SIM SOURCE_DIR - scenarios drawn at random: the same seed gives the same scores, each
# can be listed, printed and run by its name, and invalid arguments are refused in one sentence.
set -u
. "$(dirname "$0")/common.sh"

# score NAME ARGUMENT...
score()
{
	name=$1
	shift
	"$tool" score --fresh -l vegas,fixed --tsv - "$@" >"$work/$name" || complain "no scores: $*"
}

score once --random 4 --seed 3 --jobs 1
score again --random 4 --seed 3 --jobs 2
cmp "$work/once" "$work/again" || complain 'the same seed gives other scores'
score other --random 4 --seed 4
cmp -s "$work/once" "$work/other" && complain 'another seed gives the same scores'
[ "$(wc -l <"$work/once")" = 9 ] || complain "not 4 scenarios for 2 limits: $(cat "$work/once")"
[ "$(head -n 1 "$work/once" | cut -f 16-)" = "$(printf 'single_power\tsingle_goodput\tsingle_latency')" ] ||
	complain "other columns: $(head -n 1 "$work/once")"
score two --random 1 --seed 3..4
[ "$(cut -f 3,4 "$work/two" | sort -u | tr '\t\n' '  ')" = \
	'random-3-1 3 random-3-1 4 scenario seed ' ] || complain "two seeds: $(cat "$work/two")"

# By its name it has the same score; so has its text in a file.
score named -s random-3-2 --seed 3
"$tool" list --scenario random-3-2 >"$work/drawn.cfg" || complain 'no text'
score filed -s "$work/drawn.cfg" --seed 3
cmp "$work/named" "$work/filed" || complain 'the text of a scenario is another scenario'
grep -P '\trandom-3-2\t' "$work/once" | cut -f 1-15 | diff - "$work/named" >"$work/diff"
grep -q '^<' "$work/diff" && complain "by name it scores otherwise: $(cat "$work/diff")"
expect 0 '^# random-3-2: ' run -l vegas -s random-3-2
expect 0 '^# random-3-2: ' run -l vegas --random 2 --seed 3
expect 0 '^name = "healthy";' list --scenario healthy

# The list has the descriptions, and the table shows those of the worst.
"$tool" list --random 40 --seed 3 >"$work/list"
[ "$(grep -cE '^random-3-[0-9]+  .*; load .*\.$' "$work/list")" = 40 ] || complain "$(cat "$work/list")"
"$tool" list --random 2 >"$work/default"
"$tool" list --random 2 --seed 1 | cmp - "$work/default" || complain 'the seed is not 1 by default'
expect 0 '^4 scenarios, seeds 3 to 3' score -l vegas --random 4 --seed 3
grep -q '^against one fixed limit for the whole' "$work/out" || complain 'no second table'
[ "$(sed -n '/all scenarios but the worst/,$s/^vegas  *[0-9.]* %  *[0-9.]* %  *[0-9.]* %  *x.*/&/p' "$work/out" |
	wc -l)" = 1 ] || complain "no quantiles: $(cat "$work/out")"
[ "$(grep -c '; load ' "$work/out")" = 4 ] || complain "not 4 descriptions: $(cat "$work/out")"
expect 0 '^  random-3-1 +\(single\) +limit +[0-9]+, best' score -l vegas --random 1 --seed 3 --oracles
"$tool" score -l vegas -s "$here/small.cfg" -r 1 >"$work/listed"
grep -qE 'against one|eight workers' "$work/listed" && complain 'listed scenarios have a second table'

for count in 0 x -1 100001 2x ''; do
	refused 'is not a number from 1 to 100000' score -l vegas --random="$count"
	refused 'is not a number from 1 to 100000' list --random="$count"
done
refused 'random and --scenario exclude' score -l vegas --random 2 -s healthy
refused 'random takes seeds up to' score -l vegas --random 2 --seed 4294967296
refused 'random takes seeds up to' list --random 2 --seed 4294967296
refused 'seed is for --random' list --seed 2
refused 'is not a seed' list --random 2 --seed x
for name in random- random-1 random-1-0 random-x-1 random-1-1x random-4294967296-1; do
	refused "no scenario .$name.: write random-SEED-NUMBER" run -l vegas -s "$name"
	refused "no scenario .$name.: write random-SEED-NUMBER" list --scenario "$name"
done
refused 'no scenario "nonsense"' list --scenario nonsense
refused 'small.cfg is a file already' list --scenario "$here/small.cfg"
refused 'nowhere.cfg: No such file' list --scenario ./nowhere.cfg
exit "$failed"
