# SPDX-License-Identifier: BSD-2-Clause
# Power, goodput and latency by the value of a parameter, over all scenarios and in the worst.
#
# Reads the table scores of weir-sim sweep. Set on the command line: the variables of style.gp, param
# (a name), and default (its value as text, or empty).

load "style.gp"

load "scores.gp"

before = param."="
start_of(name) = strstrt(name, before) + strlen(before)
setting(i) = limit[i][start_of(limit[i]):strlen(limit[i])]
base = limit[1][1:strstrt(limit[1], before) - 2]

# Values whose distance from the best may be chance.
within = 0.03
best = 0
do for [i = 1:limits] {
	best = power_all[i] > best ? power_all[i] : best
}
flat = 0
do for [i = 1:limits] {
	flat = flat + (power_all[i] >= (1 - within) * best)
}

eval paper(900, 600)
first = 56
right = width - 150
set xrange [0.5:limits + 0.5]
set xtics ("" 1)
do for [i = 1:limits] {
	set xtics add ("" i)
	if (power_all[i] >= (1 - within) * best) {
		set object i rectangle from i - 0.5, graph 0 to i + 0.5, graph 1 behind \
			fillcolor rgb shade fillstyle solid noborder
	}
}

set multiplot
set label 1 sprintf("%s: %d of %d values of %s are within %.0f %% of the best power", base, flat, limits, \
	param, 100 * within) at screen from_left(first), screen from_top(20) font large textcolor rgb ink
set label 2 sprintf("Against the best fixed limit of each phase, in %d scenario%s; shaded: within %.0f %%.%s", \
	scenarios, scenarios == 1 ? "" : "s", 100 * within, default eq "" ? "" : " The default is ".default.".") \
	at screen from_left(first), screen from_top(40) font small textcolor rgb grey

# A faint line for each scenario; the worst; the mean.
do for [p = 1:3] {
	top = p == 1 ? 76 : p == 2 ? 330 : 450
	bottom = p == 1 ? 304 : p == 2 ? 424 : 544
	eval place(first, top, right, bottom)
	set label 3 word("power goodput latency", p) at screen from_left(first), screen from_top(top - 10) \
		textcolor rgb grey
	if (p == 1) {
		set yrange [0:*]
		set label 10 "mean" at graph 1.01, first power_all[limits] left textcolor rgb subject
		set label 11 "worst: ".scenario[worst_in[limits]] at graph 1.01, first worst[limits] left \
			textcolor rgb oracle
		plot for [k = 1:scenarios] power_all using 1:(power[mean($1, k)]) with lines \
				linecolor rgb "#cccccc" linewidth 0.6 notitle, \
			worst using 1:(worst[$1]) with linespoints linestyle 3 pointtype 7 pointsize 0.4 notitle, \
			power_all using 1:(power_all[$1]) with linespoints linestyle 1 pointtype 7 pointsize 0.6 notitle
		unset label 1
		unset label 2
		unset label 10
		unset label 11
	}
	if (p == 2) {
		set ytics 0.25
		plot for [k = 1:scenarios] goodput_all using 1:(goodput[mean($1, k)]) with lines \
				linecolor rgb "#cccccc" linewidth 0.6 notitle, \
			goodput_all using 1:(goodput_all[$1]) with linespoints linestyle 1 pointtype 7 pointsize 0.6 notitle
	}
	if (p == 3) {
		set logscale y
		set yrange [0.8:*]
		set ytics (0.5, 1, 2, 5, 10, 20, 50, 100)
		set format y "×%g"
		do for [i = 1:limits] {
			set xtics add (setting(i) i)
		}
		set xlabel param textcolor rgb grey
		plot for [k = 1:scenarios] latency_all using 1:(latency[mean($1, k)]) with lines \
				linecolor rgb "#cccccc" linewidth 0.6 notitle, \
			latency_all using 1:(latency_all[$1]) with linespoints linestyle 1 pointtype 7 pointsize 0.6 notitle
	}
}
unset multiplot
