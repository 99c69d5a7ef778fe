# What each processor might use, and both together, to a tenth of a second of a run, whenever it changes, from what they
# wrote of it.
#
# Usage: awk -f granted.awk EVENTS who=1 FILE... who=2 FILE...

BEGIN {
	FS = OFS = "\t"
}

# The events come first. Who is dead writes nothing, and what he wrote last holds no more.
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
