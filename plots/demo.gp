# The two runs of scripts/demo in one picture, from the tables that it wrote.
#
# Set on the command line: out, limit, deadline (ms), capacity, overload, from, to,
# end (s), patience (ms), good_without, good_with (answers in time a second under overload).

set datafile separator "\t"
set datafile missing "-"
set encoding utf8

file(run, table) = out."/".run."-".table.".tsv"
without = "#d95f02"
with_it = "#1b6ca8"
grey = "#777777"

set style line 1 linecolor rgb without linewidth 2.5
set style line 2 linecolor rgb with_it linewidth 2.5
set style line 3 linecolor rgb without linewidth 1.5 dashtype (4,3)
set style line 4 linecolor rgb with_it linewidth 1.5 dashtype (4,3)
set style line 5 linecolor rgb grey linewidth 1.5 dashtype (8,4)

set border 3 linecolor rgb grey
set tics nomirror out scale 0.5 textcolor rgb "#222222"
set grid ytics linecolor rgb "#dddddd" linewidth 1
set key at graph 1, graph 1.15 right top horizontal samplen 2 width 1 nobox
set xrange [0:end]
set xtics 5
set object 1 rectangle from from, graph 0 to to, graph 1 behind \
	fillcolor rgb "#fff2cc" fillstyle solid noborder

left = 0.085
right = 0.985
top = 0.885
bottom = 0.07
panel = (top - bottom) / 4.0
gap = 0.045

title_text = sprintf("At %s times its capacity, a server answers %.0f requests a second in time with weir, and %.0f without", \
	overload, good_with, good_without)
subtitle = sprintf("Capacity %.0f requests/s. In time: within %d ms. HTTP server on SQLite, open-loop load.", \
	capacity, deadline)

place(n) = sprintf("set tmargin at screen %f; set bmargin at screen %f; set lmargin at screen %f; set rmargin at screen %f", \
	top - n * panel, top - (n + 1) * panel + gap, left, right)

draw(terminal, name) = sprintf("set terminal %s; set output '%s/demo.%s'", terminal, out, name)

do for [format in "png svg"] {
	if (format eq "png") {
		set terminal pngcairo size 1200,1300 font "DejaVu Sans,12" background rgb "white"
	} else {
		set terminal svg size 1200,1300 font "DejaVu Sans,12" background rgb "white"
	}
	set output out."/demo.".format
	set multiplot
	set label 1 title_text at screen left, 0.972 font ",15" textcolor rgb "#111111"
	set label 2 subtitle at screen left, 0.945 textcolor rgb grey
	set label 3 sprintf("%s × capacity", overload) at (from + to) / 2.0, graph 0.09 \
		center textcolor rgb "#8a6d00"
	set format x ""
	unset xlabel

	eval place(0)
	set ylabel "requests / s"
	set yrange [0:*]
	plot file("limited", "seconds") using 1:2 with steps linestyle 5 title "sent", \
		file("limited", "seconds") using 1:3 with lines linestyle 2 \
			title "in time with weir", \
		file("unlimited", "seconds") using 1:3 with lines linestyle 1 title "in time without"
	unset label 1
	unset label 2
	unset label 3

	eval place(1)
	set ylabel "latency, ms"
	set logscale y
	set yrange [2:patience * 2]
	set label 1 "clients give up" at end, patience * 1.45 right textcolor rgb grey
	set label 2 "deadline" at end, deadline * 1.45 right textcolor rgb grey
	plot file("limited", "seconds") using 1:7 with lines linestyle 2 title "p99 with weir", \
		file("limited", "seconds") using 1:6 with lines linestyle 4 title "p50", \
		file("unlimited", "seconds") using 1:7 with lines linestyle 1 title "p99 without", \
		file("unlimited", "seconds") using 1:6 with lines linestyle 3 title "p50", \
		deadline with lines linestyle 5 notitle, patience with lines linestyle 5 notitle
	unset label 1
	unset label 2

	eval place(2)
	set ylabel "in flight"
	set yrange [0.8:*]
	plot file("limited", "server") using 1:($3 > 0 ? $3 : 0.8) with lines linestyle 2 \
			title "with weir", \
		file("unlimited", "server") using 1:($3 > 0 ? $3 : 0.8) with lines linestyle 1 \
			title "without"
	unset logscale y

	eval place(3)
	set ylabel "limit"
	set yrange [0:*]
	set format x "%g"
	set xlabel "seconds"
	plot file("limited", "server") using 1:2 with steps linestyle 2 title limit
	unset multiplot
	unset output
}
