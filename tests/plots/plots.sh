#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# plots.sh WEIR_SIM WORK_DIR RESULTS - every plot is drawn in every format, without warnings.
set -u

sim=$1
work=$2
results=$3
failed=0

for tool in gnuplot xmllint; do
	command -v "$tool" >/dev/null || { echo "SKIPPED: $tool is missing"; exit 77; }
done

rm -rf "$work"
mkdir -p "$work/cache"
export XDG_CACHE_HOME="$work/cache"
export LC_ALL=C.UTF-8

# complain TEXT...
complain()
{
	echo "$*"
	failed=1
}

# A server of one worker for two seconds: the search for its oracle is short.
scenario()
{
	cat >"$work/$1.cfg" <<-END
		name = "$1";
		family = "tiny";
		about = "one worker's service";
		server = ( { name = "worker"; workers = 1; work = "exponential 10ms"; } );
		client = { deadline = "100ms"; };
		phases = (
			{ name = "calm"; length = "1s"; load = 0.5; },
			{ name = "rush"; length = "1s"; load = 2.0; }
		);
	END
}

# draw FILE TEXT PLOT OPTION...: draw a picture, which contains the text.
draw()
{
	file=$work/$1
	text=$2
	shift 2
	"$sim" plot "$@" --output "$file" >"$work/said" 2>&1 || complain "$*: exit status $?"
	[ ! -s "$work/said" ] || complain "$*: $(cat "$work/said")"
	[ -s "$file" ] || { complain "$*: $file is empty"; return; }
	case $file in
	*.svg)
		xmllint --noout "$file" || complain "$*: $file is not well formed"
		xmllint --xpath '//*[local-name()="text"]' "$file" | grep -qF "$text" ||
			complain "$*: $file does not say $text"
		;;
	*.txt) grep -qF "$text" "$file" || complain "$*: $file does not say $text" ;;
	*.png) head -c 4 "$file" | grep -q PNG || complain "$*: $file is not a picture" ;;
	esac
}

# refused WORDS COMMAND...: the command fails with a message that contains the words.
refused()
{
	words=$1
	shift
	"$@" >"$work/said" 2>&1 && complain "$*: there was no error"
	grep -q "$words" "$work/said" || complain "$*: $(cat "$work/said")"
}

scenario tiny-a
scenario tiny-b
cp "$work/tiny-a.cfg" "$work/it's.cfg"
a=$work/tiny-a.cfg
b=$work/tiny-b.cfg

for format in svg png txt; do
	draw timeline.$format 'tiny-b: power' timeline --limit vegas --scenario "$a,$b"
	draw limits.$format 'vegas' limits --limit vegas,aimd --scenario "$a"
	draw map.$format 'fixed limits' map --limit vegas,aimd --scenario "$a,$b" --seed 1..2
	draw heat.$format 'tiny-a' heat --limit vegas,aimd --scenario "$a,$b" --seed 1
	draw sweep.$format 'values of alpha' sweep --limit vegas --scenario "$a,$b" --seed 1 \
		--param alpha=log10:1,log10:2
	draw real.$format 'two-stations' real --from "$results/real.tsv"
done

# Plots with a single point; quotes in names.
draw one.svg 'vegas' map --limit vegas --scenario "$a" --seed 1
draw "it's.svg" 'vegas' heat --limit vegas --scenario "$work/it's.cfg" --seed 1 --data "$work/data's"

# The kept tables make the same picture.
draw again.svg 'vegas' heat --from "$work/data's/scores.tsv"
cmp -s "$work/it's.svg" "$work/again.svg" || complain "kept tables make another picture"
draw lone.svg 'vegas' map --from "$work/data's/scores.tsv"

refused 'There is no plot pie' "$sim" plot pie
refused 'Which plot' "$sim" plot
refused 'does not end in' "$sim" plot heat -o heat.jpeg
refused 'takes one limit' "$sim" plot timeline --limit vegas,aimd --scenario "$a"
refused 'param is required' "$sim" plot sweep --limit vegas --scenario "$a"
refused 'is not a number from 2' "$sim" plot sweep --limit vegas --scenario "$a" --param beta=1,2 -n 101
refused 'No such file' "$sim" plot heat --from "$work/nothing.tsv"
refused 'from is required' "$sim" plot real
refused 'no table of weir-real' "$sim" plot real --from "$work/data's/scores.tsv"
refused '^weir-sim plot: /nowhere/x.svg: No such file' "$sim" plot heat -l vegas -s "$a" -o /nowhere/x.svg
refused 'gnuplot is missing' env PATH=/nonexistent "$sim" plot heat --from "$work/data's/scores.tsv"

exit "$failed"
