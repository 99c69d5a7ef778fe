# SPDX-License-Identifier: BSD-2-Clause
# The runs of an overload demo in one picture, from the tables of scripts/overload.sh.
#
# Set on the command line: out, runs (names; the first without a limiter), good (their answers
# in time per second under overload), subject, deadline (ms), capacity, overload, from, to, end (s),
# patience (ms).

set datafile separator "\t"
set datafile missing "-"
set encoding utf8

count = words(runs)
run(i) = word(runs, i)
file(i, table) = out."/".run(i)."-".table.".tsv"
name(i) = i == 1 ? "without" : count == 2 ? "with weir" : run(i)
grey = "#777777"

# Colours for colour-blind readers, too; if there are more limits, colours repeat.
colours = "#d95f02 #1b6ca8 #009e73 #cc79a7 #56b4e9 #8d6e00"
do for [i = 1:count] {
	colour = word(colours, (i - 1) % words(colours) + 1)
	set style line i linecolor rgb colour linewidth 2.5
	set style line 100 + i linecolor rgb colour linewidth 1.5 dashtype (4,3)
}
set style line 200 linecolor rgb grey linewidth 1.5 dashtype (8,4)

set border 3 linecolor rgb grey
set tics nomirror out scale 0.5 textcolor rgb "#222222"
set grid ytics linecolor rgb "#dddddd" linewidth 1
set key at graph 1, graph 1.15 right top horizontal samplen 2 width 1 nobox
set xrange [0:end]
set xtics 5
set object 1 rectangle from from, graph 0 to to, graph 1 behind \
	fillcolor rgb "#fff2cc" fillstyle solid noborder

# Not every program reports calls in flight.
rows(i) = int(system(sprintf("wc -l <'%s'", file(i, "server"))))
shown = 0
do for [i = 2:count] { shown = rows(i) > 1 ? shown + 1 : shown }
panels = shown == count - 1 ? 4 : 2

left = 0.085
right = 0.985
top = 0.885
bottom = panels == 4 ? 0.07 : 0.11
panel = (top - bottom) / real(panels)
gap = panels == 4 ? 0.045 : 0.08
height = panels == 4 ? 1300 : 750
line = 35.0 / height

title_text = sprintf("At %s times its capacity: %.0f requests a second in time with weir, and %.0f without", \
	overload, word(good, 2) + 0, word(good, 1) + 0)
subtitle = sprintf("Capacity %.0f requests/s. In time: within %d ms. %s, open-loop load.", \
	capacity, deadline, subject)

place(n) = sprintf("set tmargin at screen %f; set bmargin at screen %f; set lmargin at screen %f; set rmargin at screen %f", \
	top - n * panel, top - (n + 1) * panel + gap, left, right)
time_axis(n) = n == panels - 1 ? "set format x '%g'; set xlabel 'seconds'" : "set format x ''; unset xlabel"

do for [format in "png svg"] {
	if (format eq "png") {
		set terminal pngcairo size 1200,height font "DejaVu Sans,12" background rgb "white"
	} else {
		set terminal svg size 1200,height font "DejaVu Sans,12" background rgb "white"
	}
	set output out."/demo.".format
	set multiplot
	set label 1 title_text at screen left, 1 - line font ",15" textcolor rgb "#111111"
	set label 2 subtitle at screen left, 1 - 2 * line textcolor rgb grey
	set label 3 sprintf("%s × capacity", overload) at (from + to) / 2.0, graph 0.09 \
		center textcolor rgb "#8a6d00"

	eval place(0)
	eval time_axis(0)
	set ylabel "requests / s"
	set yrange [0:*]
	plot file(1, "seconds") using 1:2 with steps linestyle 200 title "sent", \
		for [i = 1:count] file(i, "seconds") using 1:3 with lines linestyle i \
			title (count == 2 ? "in time " : "").name(i)
	unset label 1
	unset label 2
	unset label 3

	eval place(1)
	eval time_axis(1)
	set ylabel "latency, ms"
	set logscale y
	set yrange [2:patience * 2]
	set label 1 "clients give up" at end, patience * 1.45 right textcolor rgb grey
	set label 2 "deadline" at end, deadline * 1.45 right textcolor rgb grey
	plot for [i = 1:count] file(i, "seconds") using 1:7 with lines linestyle i \
			title "p99 ".name(i), \
		for [i = 1:count] file(i, "seconds") using 1:6 with lines linestyle 100 + i \
			title i < count ? "" : "p50", \
		deadline with lines linestyle 200 notitle, patience with lines linestyle 200 notitle
	unset label 1
	unset label 2

	if (panels == 4) {
		eval place(2)
		eval time_axis(2)
		set ylabel "in flight"
		set yrange [0.8:*]
		plot for [i = 1:count] (rows(i) > 1 ? file(i, "server") : "/dev/null") \
			using 1:($3 > 0 ? $3 : 0.8) with lines linestyle i title name(i)
		unset logscale y

		eval place(3)
		eval time_axis(3)
		set ylabel "limit"
		set yrange [0:*]
		plot for [i = 2:count] file(i, "server") using 1:2 with steps linestyle i title run(i)
	}
	unset logscale y
	unset multiplot
	unset output
}
