# SPDX-License-Identifier: BSD-2-Clause
# The load of members on a store: attempts per refresh, and requests and bytes per second.
#
#	gnuplot -e "load='bench/results/fleet-load.tsv'; simulated='bench/results/fleet-simulated.tsv'; out='docs/figures/fleet.svg'" plots/fleet.gp
#
# Set on the command line: load, simulated (tables of weir-fleet-bench), out (a file).

format = "svg"
columns = 0
load_table = load
load "plots/style.gp"

stores = "shm redis etcd"
colours = "#0072b2 #d55e00 #009e73"
is(name) = strcol("store") eq name && strcol("wants") eq "changing" && column("each_s") == 5
rarely(name) = strcol("store") eq name && strcol("wants") eq "changing" && column("each_s") > 5
one = "#222222"
regions = "#cc79a7"
in_one(dummy) = column("regions") == 0
in_regions(dummy) = column("regions") > 0

eval paper(1000, 430)
set datafile columnheaders
set logscale x 10
set xrange [7:150000]
set xtics ("10" 10, "100" 100, "1000" 1000, "10,000" 10000, "100,000" 100000)
set xlabel "members" textcolor rgb grey
set multiplot
set label 1 at screen from_left(60), screen from_top(22) "attempts of a refresh" font large textcolor rgb ink
set label 2 at screen from_left(60), screen from_top(40) \
	"each member wants something else each time" font small textcolor rgb grey
eval place(60, 60, 460, 370)
set logscale y 2
set yrange [0.95:10]
set ytics (1, 1.5, 2, 3, 4, 6, 8)
set label 3 at graph 0.04, graph 0.94 "in one store, simulated" textcolor rgb one font small
set label 4 at graph 0.04, graph 0.88 "at the root of regions, simulated" textcolor rgb regions font small
do for [i = 1:3] {
	set label 4 + i at graph 0.04, graph 0.88 - 0.06 * i "in one store: ".word(stores, i) \
		textcolor rgb word(colours, i) font small
}
set label 8 at graph 0.04, graph 0.64 "squares: a member refreshes each 20 s, not each 5 s" \
	textcolor rgb grey font small
plot simulated using (in_one(0) ? column("members") : NaN):(column("attempts")) \
		with linespoints linecolor rgb one linewidth 2 pointtype 7 pointsize 0.5, \
	simulated using (in_regions(0) ? column("members") : NaN):(column("attempts")) \
		with linespoints linecolor rgb regions linewidth 2 pointtype 7 pointsize 0.5, \
	for [i = 1:3] load_table using (is(word(stores, i)) ? column("members") : NaN):(column("attempts")) \
		with linespoints linecolor rgb word(colours, i) linewidth 1 pointtype 6 pointsize 0.8, \
	for [i = 1:3] load_table using (rarely(word(stores, i)) ? column("members") : NaN):(column("attempts")) \
		with points linecolor rgb word(colours, i) pointtype 4 pointsize 0.8
do for [i = 2:8] { unset label i }
set label 1 at screen from_left(560), screen from_top(22) "bytes a second, of the one store or the root" \
	font large textcolor rgb ink
set label 2 at screen from_left(560), screen from_top(40) \
	"keys and values, read and written" font small textcolor rgb grey
eval place(560, 60, 960, 370)
set logscale y 10
set yrange [1e3:*]
set ytics autofreq
set format y "%.0s %cB"
plot simulated using (in_one(0) ? column("members") : NaN):(1e3 * (column("sent_kB_s") + column("got_kB_s"))) \
		with linespoints linecolor rgb one linewidth 2 pointtype 7 pointsize 0.5, \
	simulated using (in_regions(0) ? column("members") : NaN):(1e3 * (column("sent_kB_s") + column("got_kB_s"))) \
		with linespoints linecolor rgb regions linewidth 2 pointtype 7 pointsize 0.5, \
	for [i = 1:3] load_table using (is(word(stores, i)) ? column("members") : NaN):(1e3 * (column("sent_kB_s") + column("got_kB_s"))) \
		with linespoints linecolor rgb word(colours, i) linewidth 1 pointtype 6 pointsize 0.8, \
	for [i = 1:3] load_table using (rarely(word(stores, i)) ? column("members") : NaN):(1e3 * (column("sent_kB_s") + column("got_kB_s"))) \
		with points linecolor rgb word(colours, i) pointtype 4 pointsize 0.8
unset multiplot
