# SPDX-License-Identifier: BSD-2-Clause
# Sums requests up by key: a phase, or a slice of time.
#
# In:  a file of key, seconds; then requests sorted by key and latency: key,
#      status, latency_us.
# Out: key, then per second: sent, answered in time, refused, not answered; then
#      p50 and p99 in ms of all that were not refused.
# Set: deadline (us).

function percentile(q,    rank)
{
	rank = int(q * served)
	if (rank < q * served)
		rank++
	return served ? sprintf("%.1f", latency[rank] / 1000) : "-"
}

function finish()
{
	if (key != "")
		printf "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t%s\n", key, sent / seconds[key],
			good / seconds[key], refused / seconds[key], unanswered / seconds[key],
			percentile(0.5), percentile(0.99)
	sent = good = refused = unanswered = served = 0
}

BEGIN {
	FS = "\t"
}

NR == FNR {
	seconds[$1] = $2
	next
}

$1 != key {
	finish()
	key = $1
}

{
	sent++
	if ($2 == 503) {
		refused++
		next
	}
	latency[++served] = $3
	if ($2 == 0)
		unanswered++
	else if ($2 == 200 && $3 <= deadline)
		good++
}

END {
	finish()
}
