#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# commands.sh WEIR_SIM SOURCE_DIR - every command works.
set -u
. "$(dirname "$0")/common.sh"
small=$here/small.cfg

# columns FILE: the names in its first line, one per line
columns()
{
	head -n 1 "$1" | tr '\t' '\n'
}

# lines FILE COUNT
lines()
{
	[ "$(wc -l <"$1")" = "$2" ] || complain "$1 has $(wc -l <"$1") lines, not $2: $(cat "$1")"
}

expect 0 '^Commands:' --help
for command in list run score sweep replay; do
	expect 0 "^ +$command " --help
	expect 0 "^Usage: weir-sim $command" "$command" --help
done

expect 0 '^  vegas ' list
expect 0 '^    alpha ' list --parameters
expect 0 '^  healthy-small-bimodal  healthy  +Load' list

expect 0 '^vegas +ill ' run --limit vegas --scenario "$small"
expect 0 '^vegas +windows [0-9]+, hash [0-9a-f]{16}$' run -l vegas -s "$small" -r 1..2
expect 0 '^aimd:min=1 +ill ' run -l vegas,aimd:min=1 -s "$small"
expect 0 '^2 scenarios' score -l fixed -s family:microseconds -r 1

# A folder stands for its scenarios, ordered by file name, and nothing else.
mkdir "$work/folder"
for name in b a .hidden; do
	sed "s/^name = .*/name = \"$name\";/" "$small" >"$work/folder/$name.cfg"
done
echo 'no scenario' >"$work/folder/notes"
expect 0 '^# a: ' run -l vegas -s "$work/folder,$small"
[ "$(sed -n 's/^# \(.*\):.*/\1/p' "$work/out" | tr '\n' ' ')" = 'a b small ' ] ||
	complain "a folder of a and b: $(cat "$work/out")"
"$tool" run -l vegas,fixed:limit=9 -s "$small" --series "$work/series" --every 1s --oracle
lines "$work/series" 37
columns "$work/series" | grep -qx limit || complain "the series has no limit"
[ "$(cut -f 2 "$work/series" | sort -u | tr '\n' ' ')" = 'algorithm fixed:limit=9 oracle vegas ' ] ||
	complain "the series has other limits"

expect 0 '^1 scenarios, seeds 1 to 2' score -l vegas -s "$small" -r 1..2
sed 's/load = [0-9.]*/load = 0/' "$small" >"$work/empty.cfg"
expect 0 '^vegas +-$' score -l vegas -s "$work/empty.cfg" -r 1
expect 0 '^vegas +[0-9.]+ ' score -l vegas -s "$small" -r 1..2 --worst 1
expect 0 '^  small +warm-up +limit +[0-9]+, best +[0-9.]+ \(warm-up\)' score -l vegas -s "$small" \
	-r 1 --oracles
expect 0 '^oracle x1 +1\.000  1\.000-1\.000   100\.0 %  x1\.00 ' score -l vegas -s "$small" -r 1..2 \
	--times 1,0.25
expect 0 '^oracle x0\.25 ' score -l vegas -s "$small" -r 1 --times 2 --times 0.25
! grep -q '^oracle x2' "$work/out" || complain "factors of an option that was given again: $(cat "$work/out")"
"$tool" score -l all -s "$small" -r 1..3 --tsv "$work/scores" >"$work/table"
lines "$work/scores" "$((1 + 3 * $(grep -cE '^[a-z0-9]+ +[0-9.]+ +[0-9.]+-' "$work/table")))"

expect 0 '^vegas:alpha=log10:3 ' sweep -l vegas -s "$small" -r 1 --param alpha=log10:1..6
expect 0 '^aimd:timeout=.*us ' sweep -l aimd -s "$small" -r 1 --param timeout=10ms..1s --steps 3
[ "$(grep -c '^aimd:' "$work/out")" = 3 ] || complain "not three steps: $(cat "$work/out")"
expect 0 '^aimd:timeout=1000000us ' sweep -l aimd -s "$small" -r 1 --param timeout=10ms..1s
[ "$(grep -c '^aimd:' "$work/out")" = 9 ] || complain "not nine steps: $(cat "$work/out")"
expect 0 '^aimd:timeout=2000000us ' sweep -l aimd -s "$small" -r 1 --param timeout=1ms..2s
expect 0 '^aimd:max=8000000 ' sweep -l aimd -s "$small" -r 1 --param max=1000..8000000 --steps 3
"$tool" sweep -l fixed -s "$small" -r 1 --param limit=5,50 --tsv - >"$work/sweep"
lines "$work/sweep" 3

# A failure to write is reported, and is a failure.
expect 1 '^weir-sim: /nowhere/x: No such file' score -l vegas -s "$small" -r 1 --tsv /nowhere/x
if [ -c /dev/full ]; then
	expect 1 '^weir-sim: /dev/full: No space' score -l vegas -s "$small" -r 1 --tsv /dev/full
	expect 1 '^weir-sim: /dev/full: No space' run -l vegas -s "$small" --series /dev/full
	for command in list "run -l vegas -s $small" "run -l vegas -s $small --series -" \
		"score -l vegas -s $small -r 1" "sweep -l vegas -s $small -r 1 --param max=10,20"; do
		# Several words are intended.
		# shellcheck disable=SC2086
		"$tool" $command 2>"$work/out" >/dev/full && complain "$command: written to /dev/full"
		grep -qE '^weir-sim: standard output: (No space|Not all)' "$work/out" ||
			complain "$command: $(cat "$work/out")"
	done
fi
exit "$failed"
