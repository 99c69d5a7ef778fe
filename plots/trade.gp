# SPDX-License-Identifier: BSD-2-Clause
# The trade-off of a limit: goodput over all scenarios against latency in one family, by constant.
#
# Set on the command line: table (of scripts/constants), family (a name), out (a file).

format = "svg"
columns = 0
load "plots/style.gp"

names = ""
note_name(s) = s eq "none" || strstrt(names." ", " ".s." ") ? 0 : (names = names." ".s, 0)
stats table every ::1 using (note_name(strcol(1))) nooutput

# A block for each constant, and one for the unchanged limit: value, latency in the family, goodput over
# all. The row of all comes before that of the family, and is kept until then.
all_goodput = 0
base_latency = 0
base_goodput = 0
stats table every ::1 using (strcol(1) eq "none" ? (base_latency = strcol(4) eq family ? $7 : base_latency, \
	base_goodput = strcol(4) eq "all" ? $6 : base_goodput, 0) : 0) nooutput
do for [i = 1:words(names)] {
	eval sprintf("set table $curve%d", i)
	plot table every ::1 using (strcol(1) eq "none" ? "" : strcol(2)):7:(all_goodput) with table if \
		((strcol(1) eq word(names, i) || strcol(1) eq "none") && \
		(strcol(4) eq "all" ? (all_goodput = $6, 0) : strcol(4) eq family))
	unset table
}

eval paper(900, 520)
right = width - 130
set xlabel "latency in the family ".family.", against the best fixed limit" textcolor rgb grey
set ylabel "goodput over all scenarios" textcolor rgb grey
set format x "×%g"
set label 1 "What one may have more of, and what for" at screen from_left(70), screen from_top(20) \
	font large textcolor rgb ink
set label 2 "A line a constant, a point a value of it; the ring is the limit as it is." \
	at screen from_left(70), screen from_top(40) font small textcolor rgb grey
set yrange [0.93:]
eval place(70, 60, right, 460)
do for [i = 1:words(names)] {
	set label 10 + i word(names, i) at screen from_left(right + 12), screen from_top(60 + 18 * i) \
		textcolor linetype i
}
plot for [i = 1:words(names)] sprintf("$curve%d", i) using 2:3 smooth unique \
		with linespoints linetype i pointtype 7 pointsize 0.5 linewidth 1.3 notitle, \
	for [i = 1:words(names)] sprintf("$curve%d", i) using 2:3:1 \
		with labels left offset 0.6,0.4 font small textcolor linetype i notitle, \
	"+" using (base_latency):(base_goodput) every ::::0 with points pointtype 6 pointsize 1.6 \
		linewidth 2 linecolor rgb ink notitle
