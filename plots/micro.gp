# SPDX-License-Identifier: BSD-2-Clause
# The cost of a call, from a table of weir-micro: by threads, and by feature.
#
#	gnuplot -e "table='micro.tsv'; out='micro'" plots/micro.gp
#
# Set on the command line: table, out (the picture's name, without .svg or .png).

set datafile separator "\t"
set datafile columnheaders
set datafile missing NaN
set encoding utf8

weir = "#1b6ca8"
hand = "#d95f02"
grey = "#777777"

set border 3 linecolor rgb grey
set tics nomirror out scale 0.5 textcolor rgb "#222222"

# The median in rows of a subject; its spread is drawn as a bar from q1 to q3.
is(name) = stringcolumn("subject") eq name
median_of(name) = is(name) ? column("median_ns") : NaN
q1_of(name) = is(name) ? column("q1_ns") : NaN
q3_of(name) = is(name) ? column("q3_ns") : NaN

names = "floor default priorities-far partitions-far mutex spinlock semaphore"
titles = "floor|weir|weir, priorities|weir, four partitions|count under a mutex|count under a spin lock|semaphore"
colours = grey." ".weir." #6aa5d8 #0b3a5e ".hand." #e6a15c #8a6d00"
title_of(n) = substr(titles, n == 1 ? 1 : bar(n - 1) + 1, n == words(names) ? strlen(titles) : bar(n) - 1)
bar(n) = n == 1 ? strstrt(titles, "|") : \
	bar(n - 1) + strstrt(substr(titles, bar(n - 1) + 1, strlen(titles)), "|")

# With one thread, as a ratio to the floor: features, look-ups and refusals.
shown(group) = group eq "features" || group eq "refusals" || group eq "registry"
is_bar(dummy) = shown(stringcolumn("group")) && column("threads") == 1
colour(group) = group eq "features" ? 0x1b6ca8 : group eq "registry" ? 0x0b3a5e : 0x6aa5d8

stats table using (is_bar(0) ? column("ratio") : NaN) name "bars" nooutput
stats table using (column("threads")) name "threads" nooutput

do for [format in "png svg"] {
	if (format eq "png") {
		set terminal pngcairo size 1200,720 font "DejaVu Sans,12" background rgb "white"
	} else {
		set terminal svg size 1200,720 font "DejaVu Sans,12" background rgb "white"
	}
	set output out.".".format
	set multiplot

	set tmargin at screen 0.87
	set bmargin at screen 0.1
	set lmargin at screen 0.06
	set rmargin at screen 0.47
	set label 1 "A pair of acquire and release, by threads" at graph 0, 1.1 font ",14"
	set label 2 "ns, median and quartiles" \
		at graph 0, 1.045 textcolor rgb grey
	set logscale x 2
	set xrange [0.9:threads_max * 1.1]
	set yrange [0:*]
	set xtics ("1" 1, "2" 2, "4" 4, "8" 8, "16" 16, "32" 32, "64" 64)
	set xlabel "threads"
	set grid ytics linecolor rgb "#dddddd" linewidth 1
	set key top left Left reverse samplen 2 nobox
	plot for [n = 1:words(names)] table \
			using (column("threads")):(median_of(word(names, n))):(q1_of(word(names, n))):(q3_of(word(names, n))) \
			with yerrorbars linecolor rgb word(colours, n) linewidth 1 pointtype 0 notitle, \
		for [n = 1:words(names)] table \
			using (column("threads")):(median_of(word(names, n))) with linespoints \
			linecolor rgb word(colours, n) linewidth 2.5 pointtype 7 pointsize 0.7 \
			title title_of(n)

	set lmargin at screen 0.64
	set rmargin at screen 0.97
	unset logscale x
	unset grid
	unset key
	unset ytics
	set xtics autofreq
	set grid xtics linecolor rgb "#dddddd" linewidth 1
	set label 1 "One thread, by feature"
	set label 2 "1 is the floor: two clock reads, two additions"
	set xrange [0:bars_max * 1.12]
	set yrange [bars_records + 0.8:0.2]
	set xlabel "ratio to the floor"
	set arrow 1 from 1, graph 0 to 1, graph 1 nohead linecolor rgb hand linewidth 1.5 dashtype (8,4) front
	row = 0
	next(dummy) = (row = row + 1, row)
	plot table using (0):(is_bar(0) ? next(0) : NaN):(0):(column("ratio")):(row - 0.38):(row + 0.38):(colour(stringcolumn("group"))) \
			with boxxyerror linecolor rgb variable fillstyle solid noborder, \
		(row = 0, NaN), \
		table using (0):(is_bar(0) ? next(0) : NaN):(stringcolumn("subject")) \
			with labels right offset -0.7, 0 font ",10", \
		(row = 0, NaN), \
		table using (column("ratio")):(is_bar(0) ? next(0) : NaN):(sprintf("%.2f", column("ratio"))) \
			with labels left offset 0.5, 0 font ",10" textcolor rgb grey
	unset arrow 1
	set ytics
	unset multiplot
	unset output
}
