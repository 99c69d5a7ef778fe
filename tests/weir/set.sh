#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# set.sh WEIR HOLDER - what can be changed, and what cannot.
set -u
. "$(dirname "$0")/common.sh"

hold a 3 "$base-a" settable:initial=5 live=0.6 batch=0.3
hold b 4 "$base-b" vegas

# is COLUMN VALUE LINE: of the table with partitions
is()
{
	got=$("$weir" stat -p "$base-a" | awk -v c="$1" -v line="$3" '$1 == line { print $c }')
	[ "$got" = "$2" ] || complain "$3: column $1 is $got, not $2"
}

tell a 3 acquire 9
is 3 5 "$base-a"
expect 0 '' set "$base-a" limit=8
is 2 8 "$base-a"
tell a 3 acquire 9
is 3 8 "$base-a"
one_line 1 'Its limit must be from 1 to 200, not 201' set "$base-a" limit=201
one_line 1 "Its limit is set by vegas" set "$base-b" limit=8
expect 0 '' set "$base-a" live.cap=0.9 live.max=7 batch.share=0.1 live.delay=0.5
is 2 7 live
one_line 1 'add up to 1.2, more than 1' set "$base-a" batch.share=0.6
one_line 1 'The cap of live is below its share' set "$base-a" live.cap=0.5 limit=3
is 2 8 "$base-a"
is 2 7 live
one_line 1 'other: there is no such partition' set "$base-a" other.share=0.6
one_line 1 'live: there is no such partition' set "$base-b" live.share=0.6
for word in live.share=2 live.cap=0 live.max=0 live.delay=-1 live.share=; do
	one_line 1 'a share and a cap are from 0 to 1' set "$base-a" "$word"
done
expect 0 '' set "$base-a" shadow=on
tell a 3 acquire 1
expect 0 "^weir_shadow\{name=\"$base-a\"\} 1\$" stat -o "$base-a"
expect 0 "^weir_would_reject_total\{name=\"$base-a\"\} 1\$" stat -o "$base-a"
expect 0 '' set "$base-a" shadow=off limit=9 live.max=100
expect 0 "^weir_shadow\{name=\"$base-a\"\} 0\$" stat -o "$base-a"
is 2 9 "$base-a"

# What is not told stays.
expect 0 '' set "$base-a" live.cap=0.7 live.delay=0
capped=$("$weir" stat -p "$base-a" | awk '$1 == "live" { print $2 }')
[ "$capped" -lt 9 ] || complain "live is not capped: $capped"
expect 0 '' set "$base-a" live.share=0.5
is 2 "$capped" live

# weir set attaches for a moment, as do other processes that reap all limiters of the machine.
is_alone()
{
	"$weir" stat -m "$base-a" | grep -c "^  #.* alive " | grep -qx 1
}
wait_for is_alone
exec 3>&- 4>&-
wait "$a" "$b" || complain 'a holder failed'
exit $failed
