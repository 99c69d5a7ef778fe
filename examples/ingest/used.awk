# SPDX-License-Identifier: BSD-2-Clause
# The units per second that each processor used in each second of a run. There are small gaps
# between the database's seconds, as each begins with a request, so the units are divided by the
# time to the next second.
#
# Usage: awk -f used.awk EVENTS LOG

BEGIN {
	FS = OFS = "\t"
}

FNR == NR {
	if ($2 == "begin")
		began = $1
	next
}

$1 != "time_ms" {
	if ($1 != time[n])
		time[++n] = $1
	units[n, $2] = $3
}

# The last second is incomplete, so the one before is repeated.
END {
	print "second", "one", "two"
	for (i = 1; i <= n; i++) {
		took = time[i + 1] - time[i]
		if (took < 1000 || took > 1500)
			took = 1000
		if (i < n) {
			one = units[i, "one"] * 1000 / took
			two = units[i, "two"] * 1000 / took
		}
		printf "%.3f\t%.0f\t%.0f\n", (time[i] - began) / 1000, one, two
	}
}
