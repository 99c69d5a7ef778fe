# SPDX-License-Identifier: BSD-2-Clause
# Goodput against latency, both relative to the best fixed limit of each phase: a point for
# each limit, dots for its seeds, and a line through the fixed limits, if there are any.
#
# Reads the table scores. Set on the command line: the variables of style.gp.

load "style.gp"

fixed = "fixed:limit="
is_fixed(name) = name[1:strlen(fixed)] eq fixed
load "scores.gp"

# A row for each seed of a limit: means over scenarios.
seed_of(name, number) = is_fixed(name) ? NaN : 100000 * number_limit(name) + number
set xrange [0:1e9]
set yrange [-100:100]
set table $seed_goodputs
plot scores skip 1 using (seed_of(strcol(1), $4)):(safe_log($6)) smooth unique
set table $seed_latencies
plot scores skip 1 using (seed_of(strcol(1), $4)):(safe_log($7)) smooth unique
unset table
set xrange [*:*]
set yrange [*:*]

dots = 0
set datafile separator whitespace
stats $seed_goodputs using (dots = dots + 1) nooutput
array seed_goodput[dots > 0 ? dots : 1]
array seed_latency[dots > 0 ? dots : 1]
dots = 0
stats $seed_goodputs using (dots = dots + 1, seed_goodput[dots] = exp($2)) nooutput
dots = 0
stats $seed_latencies using (dots = dots + 1, seed_latency[dots] = exp($2)) nooutput
set datafile separator "\t"

# The axes cover the limits that learn, except very bad ones, which would push the others together; the
# line of fixed limits may leave the picture.
hopeless = 0.25
best = 0
do for [i = 1:limits] {
	best = !is_fixed(limit[i]) && power_all[i] > best ? power_all[i] : best
}
array on_map[limits]
beyond = ""
least = 0.9
most = 1.3
low = 0.5
high = 1.05
do for [i = 1:limits] {
	on_map[i] = !is_fixed(limit[i]) && power_all[i] >= hopeless * best
	if (!is_fixed(limit[i]) && !on_map[i] && number(power_all[i])) {
		beyond = beyond.sprintf("%s%s (%.0f %%, ×%.1f)", beyond eq "" ? "" : ", ", limit[i], \
			100 * goodput_all[i], latency_all[i])
	}
	if (on_map[i]) {
		least = latency_all[i] < least ? latency_all[i] : least
		most = latency_all[i] > most ? latency_all[i] : most
		low = goodput_all[i] < low ? goodput_all[i] : low
		high = goodput_all[i] > high ? goodput_all[i] : high
	}
}
least = least / 1.1
most = most * 1.5
low = low - 0.08 > 0 ? low - 0.08 : 0
high = high + 0.05

eval paper(900, 560)
first = 56
right = width - 24
top = 70
bottom = height - 56
eval place(first, top, right, bottom)

set logscale x
set xrange [least:most]
set yrange [low:high]
set format x "×%g"
set xtics (0.5, 0.7, 1, 1.2, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100)
set ytics ("0 %%" 0)
do for [percent = 10:200:10] {
	set ytics add (sprintf("%d %%%%", percent) percent / 100.0)
}
set grid xtics ytics
set label 1 (scenarios == 1 ? "Goodput and latency in ".scenario[1] : \
	sprintf("Goodput and latency in %d scenarios", scenarios)).", against the best fixed limit of each phase" \
	at screen from_left(first), screen from_top(20) font large textcolor rgb ink
set label 2 "Top left is best. Points: means over seeds, dots: seeds. Along a grey curve, power is the same." \
	at screen from_left(first), screen from_top(40) font small textcolor rgb grey
set xlabel "mean latency" textcolor rgb grey
set label 3 "goodput" at screen from_left(first), screen from_top(top - 10) textcolor rgb grey

# Curves of equal power, each with its number where it leaves the picture.
set samples 300
do for [k = 1:5] {
	p = word("0.2 0.4 0.6 0.8 1", k) + 0
	inside = p * most < high
	set label 10 + k sprintf("power %g", p) at (inside ? most : high / p), (inside ? p * most : high) \
		right offset (inside ? -0.2 : 0), (inside ? 0.7 : -0.6) font small textcolor rgb "#aaaaaa"
}

# Place each name beside its point, clear of names placed before; units are lines of text.
x_of(i) = log(latency_all[i] / least) / log(most / least) * (right - first)
y_of(i) = (goodput_all[i] - low) / (high - low) * (bottom - top)
array name_y[limits]
covers_name(i, y, k) = x_of(i) < x_of(k) + wide(limit[k]) + 14 && \
	x_of(k) < x_of(i) + wide(limit[i]) + 14 && abs(y - name_y[k]) < 14
covers_point(i, y, k) = x_of(k) > x_of(i) + 3 && x_of(k) < x_of(i) + wide(limit[i]) + 18 && \
	abs(y - y_of(k)) < 10
clear(i, y, k) = k < 1 ? 1 : on_map[k] && k != i && \
	(number(name_y[k]) && covers_name(i, y, k) || covers_point(i, y, k)) ? 0 : clear(i, y, k - 1)
do for [i = 1:limits] {
	name_y[i] = NaN
}
do for [r = 1:limits] {
	i = ranked[r]
	if (on_map[i]) {
		y = y_of(i)
		tries = 1
		while (!clear(i, y, limits) && tries < 30) {
			y = y_of(i) + (tries % 2 ? 1 : -1) * 7 * ((tries + 1) / 2)
			tries = tries + 1
		}
		name_y[i] = y
		set label 100 + i limit[i] at latency_all[i], \
			low + name_y[i] / (bottom - top) * (high - low) left offset 1, 0 textcolor rgb subject
		if (abs(name_y[i] - y_of(i)) > 8) {
			set arrow 100 + i from latency_all[i], goodput_all[i] \
				to graph (x_of(i) + 9) / (right - first), graph name_y[i] / (bottom - top) \
				nohead linecolor rgb pale linewidth 0.8
		}
	}
}

set label 5 (beyond eq "" ? "" : "Beyond the map: ".beyond) at screen from_left(right - 90), \
	screen from_top(top - 10) right font small textcolor rgb subject

# The fixed limits, and those names that do not overlap.
unnamed(x, y, k) = k < 1 ? 1 : on_map[k] && x > x_of(k) - 8 && x - 26 < x_of(k) + wide(limit[k]) + 14 && \
	(abs(y + 8 - name_y[k]) < 13 || abs(y + 8 - y_of(k)) < 10) ? 0 : unnamed(x, y, k - 1)
set print $fixed
shown = 0
do for [i = 1:limits] {
	if (is_fixed(limit[i]) && number(power_all[i])) {
		named = unnamed(x_of(i), y_of(i), limits)
		value = limit[i][strlen(fixed) + 1:strlen(limit[i])]
		print sprintf("%f\t%f\t%s", latency_all[i], goodput_all[i], named ? value : " ")
		shown = shown + 1
	}
}
if (shown == 0) {
	print "1e-9\t-9\t-"
}
unset print
set label 4 (shown > 0 ? "fixed limits" : "") at screen from_left(right), \
	screen from_top(top - 10) right textcolor rgb oracle

plot for [k = 1:5] word("0.2 0.4 0.6 0.8 1", k) * x with lines linecolor rgb "#cccccc" \
		linewidth 0.8 notitle, \
	$fixed using 1:2 with linespoints linestyle 3 pointtype 7 pointsize 0.35 notitle, \
	$fixed using 1:2:3 with labels right offset -0.6, 0.5 font small textcolor rgb oracle notitle, \
	seed_goodput using (seed_latency[$1]):(seed_goodput[$1]) with points pointtype 7 \
		pointsize 0.3 linecolor rgb pale notitle, \
	latency_all using (on_map[$1] ? latency_all[$1] : NaN):(goodput_all[$1]) \
		with points pointtype 7 pointsize 0.8 linecolor rgb subject notitle
