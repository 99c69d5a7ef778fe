# SPDX-License-Identifier: BSD-2-Clause
# Completes the log of one load generator: a request that was never answered is
# not in it. The generator opens connections at a fixed period, burst at a time,
# so the gaps in the series say when each of them was sent.
#
# In:  h2load's log, sorted by start: start_us, status, latency_us.
# Out: phase, start_us, status (0: not answered), latency_us (of those: the patience).
# Set: phase, launch (us), period (us), burst, total, patience (us), logged (rows).

function unanswered_until(count)
{
	for (; sent < count && missing > 0; missing--) {
		printf "%s\t%.0f\t0\t%.0f\n", phase, first + int(sent / burst) * period, patience
		sent++
	}
}

BEGIN {
	OFS = "\t"
	first = launch
	missing = total - logged
}

NR == 1 {
	first = $1 - int(($1 - launch) / period) * period
}

{
	unanswered_until(int(($1 - first) / period) * burst)
	sent++
	if ($2 > 0)
		print phase, $1, $2, $3
	else
		printf "%s\t%.0f\t0\t%.0f\n", phase, $1, patience
}

END {
	unanswered_until(total)
}
