# SPDX-License-Identifier: BSD-2-Clause
# A limit in one scenario, or several side by side: limit, latency and goodput over time, beside those of
# the oracle's limits for the same calls.
#
# Reads the tables series, scores and abouts. Set on the command line: the variables of style.gp.

load "style.gp"
load "scores.gp"

us = limit[1]
array about[scenarios]
k = 0
stats abouts skip 1 using (k = k + 1, about[k] = strcol(3), 0) nooutput

# Where each phase begins, and where the last ends.
array phase[1000]
array begins[1001]
phases = 0
before = 0
see(time, name) = (phases == 0 || name ne phase[phases] ? \
	(phases = phases + 1, phase[phases] = name, begins[phases] = before) : 0, \
	before = time, begins[phases + 1] = time, time)

first = 56
last = 12
gap = 50
each = (900 - first - last - gap * (scenarios - 1)) / scenarios
line = int(each / 5.4)
wrapped = 0
do for [i = 1:scenarios] {
	about[i] = wrap(about[i], line)
	wrapped = wrapped || strstrt(about[i], "\n")
}
top = wrapped ? 104 : 90
panel = text ? 220 : 174
eval paper(900, top + 3 * panel + 8)

ours(name) = strcol(1) eq scenario[i] && strcol(2) eq name
of(name) = ours(name) ? column("time") : NaN
positive(x) = x > 0 ? x : NaN
panel_at(row) = place(left, top + row * panel, left + each, top + (row + 1) * panel - 46)

unset mytics
set multiplot
set label 1 us." beside the best fixed limit of each phase" at screen from_left(first), \
	screen from_top(20) font large textcolor rgb ink
do for [i = 1:scenarios] {
	left = first + (i - 1) * (each + gap)
	phases = 0
	before = 0
	set xrange [*:*]
	set yrange [*:*]
	stats series skip 1 using (strcol(1) eq scenario[i] && strcol(2) eq "oracle" ? \
		see($3, strcol(4)) : NaN) nooutput
	set xrange [0:begins[phases + 1]]
	set xtics step_to(begins[phases + 1]) format ""
	do for [k = 1:phases] {
		if (k % 2 == 0) {
			set object k rectangle from begins[k], graph 0 to begins[k + 1], graph 1 behind \
				fillcolor rgb shade fillstyle solid noborder
		}
		if ((begins[k + 1] - begins[k]) / begins[phases + 1] * each > wide(phase[k]) && phases <= 10 && !text) {
			set label 1000 + k phase[k] at (begins[k] + begins[k + 1]) / 2.0, graph 0.94 \
				center textcolor rgb grey
		}
	}
	set label 2 sprintf("%s: power %.2f", scenario[i], power[i]) at screen from_left(left), screen from_top(44) textcolor rgb ink
	set label 3 about[i] at screen from_left(left), screen from_top(60) font small textcolor rgb grey

	eval panel_at(0)
	# A limit that grows beyond all bounds is cut off by the panel.
	stats series skip 1 using (ours("oracle") || ours(us) ? ($11 > $12 ? $11 : $12) : NaN) nooutput
	most = STATS_max
	stats series skip 1 using (ours("oracle") || ours(us) ? $12 : NaN) nooutput
	used = STATS_max
	stats series skip 1 using (ours("oracle") ? $11 : NaN) nooutput
	used = used > STATS_max ? used : STATS_max
	high = most > 5 * used ? 5 * used : most
	wide_range = high > 20 * STATS_min
	if (wide_range) {
		set logscale y
		set yrange [STATS_min / 4.0:high * 3]
		eval log_tics(STATS_min, high, 1)
		set format y thousands(high)
	} else {
		set yrange [0:1.15 * high]
		set ytics step_to(high) format thousands(high)
	}
	eval legend(left, top - 11)
	eval entry(grey, "calls:")
	eval entry(subject, high < most ? "limit, up to ".gprintf("%.0s%c", most) : "limit")
	eval entry("#4f9cc8", "in flight")
	eval entry(oracle, "best fixed limit")
	plot series using (of(us)):(wide_range ? positive(column("inflight")) : column("inflight")) with lines linestyle 2 title "in flight", \
		series using (of("oracle")):"limit" with steps linestyle 3 title "best fixed limit", \
		series using (of(us)):"limit" with lines linestyle 1 title "limit"
	unset logscale y
	set format y "%g"
	eval unlegend
	do for [k = 1:phases] {
		unset label 1000 + k
	}
	unset label 1
	unset label 2
	unset label 3

	eval panel_at(1)
	set yrange [*:*]
	stats series skip 1 using (ours("oracle") || ours(us) ? positive($15) : NaN) nooutput
	least = STATS_min
	stats series skip 1 using (ours("oracle") || ours(us) ? positive($16) : NaN) nooutput
	set logscale y
	set yrange [least / 1.5:STATS_max * 1.5]
	eval log_tics(least, STATS_max, 60)
	eval legend(left, top + panel - 11)
	eval entry(grey, "latency, ms:")
	eval entry(subject, "p99, p50 (dashed)")
	eval entry(oracle, "best fixed limit's")
	plot series using (of("oracle")):(positive(column("p50_ms"))) with lines linestyle 4 title "best fixed limit's p50", \
		series using (of("oracle")):(positive(column("p99_ms"))) with lines linestyle 3 title "p99", \
		series using (of(us)):(positive(column("p50_ms"))) with lines linestyle 6 title "p50", \
		series using (of(us)):(positive(column("p99_ms"))) with lines linestyle 1 title "p99"
	unset logscale y
	eval unlegend

	eval panel_at(2)
	set yrange [*:*]
	stats series skip 1 using (ours("oracle") || ours(us) ? $5 : NaN) nooutput
	set yrange [0:1.05 * STATS_max]
	set ytics step_to(STATS_max) format thousands(STATS_max)
	set xtics format "%g"
	set xlabel "seconds" offset 0, 0.3 textcolor rgb grey
	eval legend(left, top + 2 * panel - 11)
	eval entry(grey, "calls a second:  offered")
	eval entry(subject, "served in time")
	eval entry(oracle, "best fixed limit's")
	plot series using (of("oracle")):"offered" with lines linestyle 5 title "offered", \
		series using (of("oracle")):"good" with lines linestyle 3 title "best fixed limit's", \
		series using (of(us)):"good" with lines linestyle 1 title "served in time"
	unset xlabel
	set format y "%g"
	eval unlegend
	do for [k = 1:phases] {
		unset object k
	}
}
unset multiplot
