# SPDX-License-Identifier: BSD-2-Clause
# The records sent to a database that throttles: with naive retries, with leased shares of its quota, and
# with shares while a process is killed and the store of the leases stops.
#
# Reads naive, shares (second, admitted, refused: records), used (second, one, two: units), granted
# (second, one, two, all) and events (second, name). Set on the command line: from (the folder of
# these), capacity and slow (units a second of the database, in the first runs and in the last), cost
# (units of a record of the first two), total (records of the last), store (its name), and the
# variables of style.gp.

load "style.gp"

file(name) = from."/".name.".tsv"
other = "#009e73"
refusal = "#d55e00"

# The times of events; 0: none.
when(name) = real("0".system(sprintf("awk -F '\\t' '$2 == \"%s\" { print $1 }' '%s'", name, \
	file("events"))))
killed = when("kill")
again = when("again")
stopped = when("stop")
gone_on = when("cont")
end = when("end")

# The records of a run, from a column.
sum(name, column) = 0 + system(sprintf("awk -F '\\t' 'NR > 1 { n += $%d } END { print n + 0 }' '%s'", \
	column, file(name)))

eval paper(900, 800)
first = 56
last = 888
gap = 50
half = (last - first - gap) / 2
set multiplot

set label 1 sprintf("%d records to a database that takes %d a second", sum("naive", 2), capacity / cost) \
	at screen from_left(first), screen from_top(22) font large textcolor rgb ink
stats file("naive") skip 1 using ($2 + $3) nooutput
most = STATS_max
set xrange [-0.6:6.6]
set xtics 1
set yrange [0:1.12 * most]
set ytics step_to(most)
set boxwidth 0.7
set style fill solid noborder
set xlabel "seconds" offset 0, 0.4 textcolor rgb grey
do for [i = 0:1] {
	name = i == 0 ? "naive" : "shares"
	left = first + i * (half + gap)
	eval place(left, 66, left + half, 196)
	eval legend(left, 50)
	eval entry(ink, i == 0 ? "naive retry:" : "two processors with leased shares:")
	eval entry(subject, sprintf("%d admitted,", sum(name, 2)))
	eval entry(refusal, sprintf("%d refused", sum(name, 3)))
	set arrow 1 from graph 0, first capacity / cost to graph 1, first capacity / cost nohead \
		linecolor rgb ink dashtype (4,3)
	plot file(name) using 1:($2 + $3) with boxes linecolor rgb refusal title "refused", \
		file(name) using 1:2 with boxes linecolor rgb subject title "admitted"
	eval unlegend
	unset label 1
}
unset arrow 1
unset xlabel

set label 1 sprintf("%d records, at %d units a second: one processor is killed, then %s is stopped", total, slow, store) \
	at screen from_left(first), screen from_top(264) font large textcolor rgb ink
set xrange [0:end]
set xtics step_to(end / 3)
set ytics step_to(slow)
if (again > 0) {
	set object 1 rectangle from killed, graph 0 to again, graph 1 behind fillcolor rgb shade \
		fillstyle solid noborder
}
if (gone_on > 0) {
	set object 2 rectangle from stopped, graph 0 to gone_on, graph 1 behind fillcolor rgb shade \
		fillstyle solid noborder
}
do for [time in sprintf("%f %f %f %f", killed, again, stopped, gone_on)] {
	if (time > 0) {
		set arrow from first time, graph 0 to first time, graph 1 nohead front linecolor rgb grey linewidth 1
	}
}
say(label, time, height, text) = time == 0 ? "" : \
	sprintf("set label %d \"%s\" at first %f, graph %f left font small textcolor rgb ink", \
	label, text, time + end * 0.006, height)

do for [i = 1:3] {
	colour = word(subject." ".other." ".ink, i)
	light = word("#bcd9ec #b5e0d3 #dddddd", i)
	top = word("306 448 590", i) + 0
	eval place(first, top, last, top + word("108 108 160", i))
	set yrange [0:1.12 * slow]
	set format x ""
	eval legend(first, top - 13)
	eval entry(ink, word("one two both", i).", units a second:")
	eval entry(grey, "area: leased and reserved")
	eval entry(colour, "line: used")
	if (i == 1) {
		eval say(11, killed, 0.91, "one is killed: once its lease")
		eval say(12, killed, 0.77, "has ended, two takes over")
		eval say(13, again, 0.91, "begins again")
		eval say(14, stopped, 0.91, store." is stopped: leases")
		eval say(15, stopped, 0.77, "hold to their end, then")
		eval say(16, stopped, 0.63, "what is reserved")
		eval say(17, gone_on, 0.91, store." goes on")
	}
	if (i == 3) {
		set format x "%g"
		set xlabel "seconds" offset 0, 0.4 textcolor rgb grey
		set arrow from graph 0, first slow to graph 1, first slow nohead linecolor rgb refusal \
			dashtype (4,3)
		set label 18 "what the database allows" at first end, first slow * 1.055 right font small \
			textcolor rgb refusal
	}
	plot file("granted") using 1:(column(i + 1)) with fillsteps fillcolor rgb light \
			fillstyle solid noborder title "leased and reserved", \
		file("used") using 1:(i == 3 ? $2 + $3 : column(i + 1)) with steps \
			linecolor rgb colour linewidth 1.8 title "used"
	eval unlegend
	unset label 1
	do for [k = 11:18] { unset label k }
}
unset multiplot
