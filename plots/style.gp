# SPDX-License-Identifier: BSD-2-Clause
# Common parts of the plots of weir-sim: paper, colours, positions in pixels.
#
# Set on the command line: the tables scores, series and abouts (files), as far as the script reads
# them; out (a file; empty: standard output); format (png, svg, txt); columns (of a terminal).

set datafile separator "\t"
set datafile missing "-"
set encoding utf8

# Okabe and Ito's colours, also for colour-blind readers.
subject = "#0072b2"
pale = "#8fc1de"
oracle = "#d55e00"
ink = "#222222"
grey = "#777777"
faint = "#dcdcdc"
shade = "#f5f3ee"

set style line 1 linecolor rgb subject linewidth 1.8
set style line 2 linecolor rgb pale linewidth 1
set style line 3 linecolor rgb oracle linewidth 1.3
set style line 4 linecolor rgb oracle linewidth 1 dashtype (6,3)
set style line 5 linecolor rgb grey linewidth 1
set style line 6 linecolor rgb subject linewidth 1 dashtype (6,3)

# Text output has no fine positions, so it uses keys instead of labels.
text = format eq "txt"
large = format eq "png" ? ",11.5" : ",15"
small = format eq "png" ? ",7.5" : ",10"

# Set the size of the paper, which the functions below use: eval paper(900, 600).
paper(w, h) = sprintf("width = %d; height = %d; set terminal %s; set output %s", w, h, \
	format eq "png" ? sprintf("pngcairo noenhanced font 'DejaVu Sans,9' fontscale 2 linewidth 2 pointscale 2 size %d,%d background rgb 'white'", 2 * w, 2 * h) : \
	format eq "svg" ? sprintf("svg noenhanced font 'sans-serif,12' size %d,%d background rgb 'white'", w, h) : \
	sprintf("dumb noenhanced mono size %d,%d", columns, columns * h / w / 2), out eq "" ? "" : "out")

# Positions from the left, and from the top.
from_left(x) = x / real(width)
from_top(y) = 1 - y / real(height)
place(left, top, right, bottom) = sprintf( \
	"set lmargin at screen %f; set rmargin at screen %f; set tmargin at screen %f; set bmargin at screen %f", \
	from_left(left), from_left(right), from_top(top), from_top(bottom))

# The approximate width of a text.
wide(s) = 6.1 * strlen(s)

# Wrap a text at blanks into lines of at most the given number of characters.
blank(s, n) = n < 2 || s[n:n] eq " " ? n : blank(s, n - 1)
wrap(s, n) = strlen(s) <= n ? s : (cut = blank(s, n), cut < 2 ? s : \
	s[1:cut - 1]."\n".wrap(s[cut + 1:strlen(s)], n))

# A round step that fits about four times into most.
round_step(step) = (decade = 10 ** floor(log10(step)), \
	step / decade > 5 ? 10 * decade : step / decade > 2 ? 5 * decade : step / decade > 1 ? 2 * decade : decade)
step_to(most) = round_step(most > 0 ? most / 4.0 : 1)

# A legend above a panel, instead of a key: eval entry(subject, "limit") after eval legend(left, top).
legend(left, top) = sprintf("entry_left = %f; entry_top = %f; entries = 100", left, top)
entry(colour, s) = text ? "" : sprintf("set label %d \"%s\" at screen %f, screen %f left textcolor rgb '%s'; entry_left = entry_left + wide(\"%s\") + 14; entries = entries + 1", \
	entries, s, from_left(entry_left), from_top(entry_top), colour, s)
unlegend = "do for [w = 100:130] { unset label w }"

set border 3 linecolor rgb grey
set tics nomirror out scale 0.5 textcolor rgb ink
set grid ytics back linecolor rgb faint linewidth 0.8
if (text) {
	unset grid
	set key at graph 0, graph 1 left bottom horizontal
} else {
	unset key
}
# Tics of a logarithmic axis: 1, 2, 5 and so on, or fewer over a wide range.
log_tics(least, most, many) = most / least > many ? "set ytics autofreq" : \
	"set ytics (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000)"

thousands(most) = most >= 10000 ? "%.0s%c" : "%g"
