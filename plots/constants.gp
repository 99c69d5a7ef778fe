# SPDX-License-Identifier: BSD-2-Clause
# The effect of a limit's constants: power over all scenarios, with each constant changed by factors.
#
# Set on the command line: table (of scripts/constants), out (a file).

format = "svg"
columns = 0
load "plots/style.gp"

# Two standard deviations of the difference of two scores of one seed each.
chance = 0.02

is(name) = (strcol(1) eq name || strcol(1) eq "none") && strcol(4) eq "all"

# The names, each once, and the power without changes.
names = ""
base = 1
note_name(s) = strstrt(names." ", " ".s." ") ? 0 : (names = names." ".s, 0)
stats table every ::1 using (strcol(1) eq "none" ? (base = strcol(4) eq "all" ? $5 : base, 0) : \
	note_name(strcol(1))) nooutput

# A block of factors and powers for each constant; and the constants that do more than chance.
far = ""
do for [i = 1:words(names)] {
	eval sprintf("set table $line%d", i)
	plot table every ::1 using 3:5 with table if (is(word(names, i)))
	unset table
	least = base
	stats sprintf("$line%d", i) using (least = $2 < least ? $2 : least, 0) nooutput
	if (least < base - chance) {
		far = sprintf("%s %d", far, i)
	}
}

eval paper(900, 560)
right = width - 170
set logscale x 2
set xtics ("half" 0.5, "÷ 1.4" 0.71, "as it is" 1, "× 1.4" 1.41, "twice" 2)
set xrange [0.5:2]
set label 1 sprintf("%d constants, each changed by itself: %d cost more power than chance does", \
	words(names), words(far)) at screen from_left(56), screen from_top(20) font large textcolor rgb ink
set label 2 "Geometric mean over all scenarios, against the best fixed limit of each phase; shaded: two deviations of chance." \
	at screen from_left(56), screen from_top(40) font small textcolor rgb grey
eval place(56, 70, right, 520)
set object 1 rectangle from graph 0, first base - chance to graph 1, first base + chance behind \
	fillcolor rgb shade fillstyle solid noborder
do for [i = 1:words(far)] {
	set label 10 + i word(names, int(word(far, i))) at screen from_left(right + 14), \
		screen from_top(60 + 17 * i) textcolor linetype i
}
plot for [i = 1:words(names)] sprintf("$line%d", i) using 1:2 smooth unique \
		with lines linecolor rgb "#c4c4c4" linewidth 0.8 notitle, \
	for [i = 1:words(far)] "$line".(words(far) > 0 ? word(far, i) : "1") using 1:2 smooth unique \
		with linespoints linetype i pointtype 7 pointsize 0.5 linewidth 1.5 notitle
