# SPDX-License-Identifier: BSD-2-Clause
# Power with real threads against simulated power for the same calls, a point for each limit and
# scenario: points on the line are predicted well.
#
# Reads the table scores: the first of the two that weir-real prints, without the means. Set on the
# command line: the variables of style.gp.

load "style.gp"

colours = "#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #000000"
array scenario[50]
scenarios = 0
find(name, k) = k > scenarios ? (scenarios = k, scenario[k] = name, k) : \
	scenario[k] eq name ? k : find(name, k + 1)
known = 0
far = 0
simulated(row) = strcol(1) eq "mean" ? NaN : $7
of(name) = strcol(1) eq name ? $7 : NaN
count(name, simulated, real) = (known = known + 1, far = far + (abs(log(real / simulated)) > log(1.25)), \
	find(name, 1))
headed = 0
stats scores index 0 using (headed = headed || strcol(7) eq "same_score", 0) nooutput
# Skip the line of names, which has no numbers.
if (headed) {
	stats scores index 0 using (simulated(0) > 0 ? count(strcol(1), $7, $8) : NaN) nooutput
}
if (known == 0) {
	print "This is no table of weir-real."
	exit status 1
}
stats scores index 0 using (simulated(0) > $8 ? $7 : $8) nooutput
most = 1.08 * STATS_max

eval paper(720, 640)
first = 56
top = 80
eval place(first, top, first + 500, top + 500)
set xrange [0:most]
set yrange [0:most]
set xtics step_to(most)
set ytics step_to(most)
set grid xtics ytics
set label 1 sprintf("Real threads against simulation: %d of %d within 25 %%", known - far, known) \
	at screen from_left(first), screen from_top(20) font large textcolor rgb ink
set label 2 "Power: goodput over latency, against the best fixed limit of each phase. Grey: 25 % more or less." \
	at screen from_left(first), screen from_top(40) font small textcolor rgb grey
set label 3 "power with real threads" at screen from_left(first), screen from_top(top - 12) \
	textcolor rgb grey
set xlabel "power in simulation, with the same calls" textcolor rgb grey
colour(k) = word(colours, (k - 1) % words(colours) + 1)
do for [k = 1:scenarios] {
	set label 10 + k scenario[k] at screen from_left(first + 512), screen from_top(top + 18 * k) \
		textcolor rgb colour(k)
}
plot x with lines linecolor rgb grey linewidth 0.8 notitle, \
	x * 1.25 with lines linecolor rgb faint linewidth 0.8 notitle, \
	x / 1.25 with lines linecolor rgb faint linewidth 0.8 notitle, \
	for [k = 1:scenarios] scores index 0 using (of(scenario[k])):8:2 \
		with labels left offset 0.7, 0 font small point pointtype 7 pointsize 0.6 \
		linecolor rgb colour(k) textcolor rgb colour(k) notitle
