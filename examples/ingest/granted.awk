# SPDX-License-Identifier: BSD-2-Clause
# The capacity of each processor, and of both together, to a tenth of a second, at each change, from
# the processors' logs.
#
# Usage: awk -f granted.awk EVENTS who=1 FILE... who=2 FILE...

BEGIN {
	FS = OFS = "\t"
}

# The events come first. A dead processor writes nothing, and its last line no longer holds.
!who {
	if ($2 == "begin")
		began = $1
	if ($2 == "kill")
		dead = $1 - began
	if ($2 == "again")
		alive = $1 - began
	last = int(($1 - began) / 100)
	next
}

$1 != "time_ms" {
	units[who, int(($1 - began) / 100)] = $2
}

function is_dead(tick)
{
	return dead && tick * 100 >= dead && (!alive || tick * 100 < alive)
}

END {
	print "second", "one", "two", "all"
	for (tick = 0; tick <= last; tick++) {
		for (who = 1; who <= 2; who++)
			if ((who, tick) in units)
				now[who] = units[who, tick]
		if (is_dead(tick))
			now[1] = 0
		line = (now[1] + 0) OFS (now[2] + 0) OFS (now[1] + now[2])
		if (line != before || tick == last)
			print tick / 10, line
		before = line
	}
}
