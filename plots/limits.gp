# SPDX-License-Identifier: BSD-2-Clause
# All limits in one scenario, a panel each, sorted by power: limit and p99 over time, on the same axes,
# beside those of the best fixed limit.
#
# Reads the tables series, scores and abouts. Set on the command line: the variables of style.gp.

load "style.gp"

load "scores.gp"
about = ""
stats abouts skip 1 using (about = strcol(3), 0) nooutput

positive(x) = x > 0 ? x : NaN
of(name) = strcol("algorithm") eq name ? column("time") : NaN
stats series skip 1 using 3:(positive($11)) name "limits" nooutput
stats series skip 1 using (strcol(2) eq "oracle" ? positive($11) : NaN) name "best" nooutput
stats series skip 1 using 3:(positive($16)) name "p99" nooutput
stats series skip 1 using (strcol(2) eq "oracle" ? positive($16) : NaN) name "best_p99" nooutput

# Some limits, and their latencies, grow beyond all bounds: they are cut off by the panel.
low = limits_min_y > best_min / 8.0 ? limits_min_y : best_min / 8.0
high = limits_max_y < best_max * 12 ? limits_max_y : best_max * 12
slow = p99_max_y < best_p99_max * 30 ? p99_max_y : best_p99_max * 30

across = text ? 2 : limits < 3 ? limits : 3
down = (limits + across - 1) / across
top = 92
panel = 204
eval paper(900, top + down * panel + 14)
first = 52
last = 12
gap = 40
each = (width - first - last - gap * (across - 1)) / across

set multiplot
set label 1 "Limits in ".scenario[1].", from the highest power to the lowest" \
	at screen from_left(first), screen from_top(20) font large textcolor rgb ink
set label 2 wrap(about, 150) at screen from_left(first), screen from_top(40) font small textcolor rgb grey
eval legend(first, 62)
eval entry(grey, "upper: limit, lower: p99 in ms, over seconds:")
eval entry(subject, "the limit's")
eval entry(oracle, "the best fixed limit's")
set xtics step_to(limits_max_x)
set logscale y
unset mytics
set grid xtics ytics
do for [r = 1:limits] {
	left = first + (r - 1) % across * (each + gap)
	y = top + (r - 1) / across * panel
	name = limit[ranked[r]]

	set xrange [*:*]
	set yrange [*:*]
	stats series skip 1 using (strcol(2) eq name ? $11 : NaN) nooutput
	set xrange [0:limits_max_x]
	set label 3 name.(STATS_max > high ? gprintf(": up to %.0s%c", STATS_max) : "") at screen from_left(left), screen from_top(y) textcolor rgb subject
	set label 4 sprintf("power %.2f", power_all[ranked[r]]) at screen from_left(left + each), \
		screen from_top(y) right textcolor rgb grey
	eval place(left, y + 10, left + each, y + 94)
	set format x ""
	set yrange [low * 0.8:high * 1.25]
	eval log_tics(low, high, 30)
	set format y r % across == 1 || across == 1 ? thousands(high) : ""
	plot series using (of("oracle")):(positive(column("limit"))) with lines linestyle 3 notitle, \
		series using (of(name)):(positive(column("limit"))) with lines linestyle 1 notitle
	do for [l = 1:130] {
		unset label l
	}

	eval place(left, y + 102, left + each, y + 162)
	set format x "%g"
	set format y r % across == 1 || across == 1 ? thousands(slow) : ""
	set yrange [p99_min_y / 2:slow * 1.25]
	eval log_tics(p99_min_y / 2, slow, 15)
	plot series using (of("oracle")):(positive(column("p99_ms"))) with lines linestyle 3 notitle, \
		series using (of(name)):(positive(column("p99_ms"))) with lines linestyle 1 notitle
}
unset multiplot
