# SPDX-License-Identifier: BSD-2-Clause
# The power of every limit in every scenario: limits sorted by mean, scenarios by family.
#
# Reads the table scores. Set on the command line: the variables of style.gp.

load "style.gp"

load "scores.gp"

# The scenarios' rows, from the top, with a gap between families.
array row[scenarios]
rows = 3.4
do for [f = 1:scenarios] {
	first = 1
	do for [k = 1:f - 1] {
		if (family[k] eq family[f]) {
			first = 0
		}
	}
	if (first) {
		do for [k = f:scenarios] {
			if (family[k] eq family[f]) {
				row[k] = rows
				rows = rows + 1
			}
		}
		rows = rows + 0.25
	}
}

line = 18
left = 200
top = 120
across = text || 220 + 52 * limits > 640 ? 220 + 52 * limits : 640
eval paper(across, text ? 2 * across * (int(rows) + 8) / columns : top + line * rows + 10)
if (text) {
	set lmargin 24
	set rmargin 0
	set tmargin 5
	set bmargin 0
} else {
	eval place(left, top, width - 10, top + line * rows)
}

set print $cells
do for [r = 1:limits] {
	i = ranked[r]
	print sprintf("%d\t1\t%f", r, power_all[i])
	print sprintf("%d\t2\t%f", r, worst[i])
	do for [k = 1:scenarios] {
		print sprintf("%d\t%f\t%f", r, row[k], power[mean(i, k)])
	}
}
unset print

set palette defined (0 "#b2182b", 1 "#ef8a62", 2 "#f6f1ea", 3 "#67a9cf", 4 "#2166ac")
set cbrange [0.2:1]
unset colorbox
unset border
unset grid
unset tics
set xrange [0.5:limits + 0.5]
set yrange [rows + 0.2:0.5]

set label 1 "Power: goodput over latency, against the best fixed limit of each phase" \
	at screen from_left(12), screen from_top(20) font large textcolor rgb ink
set label 2 (text ? "" : "1: as good as knowing the capacity. Geometric means over seeds; the best limit first.") \
	at screen from_left(12), screen from_top(40) font small textcolor rgb grey
short(s) = text ? substr(s, 1, 7) : s
do for [r = 1:limits] {
	set label 10 + r short(limit[ranked[r]]) at r, 0.35 rotate by (text ? 0 : 35) \
		left offset -0.8, 0.3 textcolor rgb ink
}

set label 1001 "all" at 0.4, 1 right textcolor rgb ink
set label 1002 "worst" at 0.4, 2 right textcolor rgb ink
do for [k = 1:scenarios] {
	set label 1002 + k scenario[k] at 0.4, row[k] right textcolor rgb ink
}

dark(x) = x < 0.33 || x > 0.88
written(x) = x == x ? sprintf("%.2f", x) : "-"
if (text) {
	plot $cells using 1:2:(written($3)) with labels notitle
} else {
	plot $cells using 1:2:(0.48):(0.47):3 with boxxyerror fillstyle solid noborder \
			fillcolor palette notitle, \
		$cells using (dark($3) ? $1 : NaN):2:(written($3)) with labels textcolor rgb "white" notitle, \
		$cells using (dark($3) ? NaN : $1):2:(written($3)) with labels textcolor rgb ink notitle
}
