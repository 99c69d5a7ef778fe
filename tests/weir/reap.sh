#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# reap.sh WEIR HOLDER - what the dead leave is given back, and the living are left alone.
set -u
. "$(dirname "$0")/common.sh"

# In a mount namespace of its own.
reaps_all()
{
	mount -t tmpfs none /dev/shm || fail 'no /dev/shm of its own'
	hold a 3 "$base-a" fixed:limit=10
	hold b 4 "$base-b" fixed:limit=10
	hold c 5 "$base-b" -
	tell c 5 acquire 2
	kill -9 "$c"
	wait "$c" 2>/dev/null
	expect 0 "^$base-a: no dead processes\$" reap
	grep -q "^$base-b: 1 dead process, 2 permits returned\$" "$work/out" || complain 'not b'
	[ "$(wc -l <"$work/out")" = 2 ] || complain "not two: $(cat "$work/out")"
	expect 0 "^$base-b +10 +0 " stat "$base-b"
	exec 3>&- 4>&- 5>&-
	wait "$a" "$b" || complain 'a holder failed'
}

if [ "${3-}" = all ]; then
	reaps_all
	exit $failed
fi

hold a 3 "$base-a" fixed:limit=10
hold b 4 "$base-a" -
hold c 5 "$base-a" -
tell a 3 acquire 2
tell b 4 acquire 3
tell c 5 acquire 4

one_line 0 "^$base-a: no dead processes\$" reap "$base-a"
one_line 1 "Process $b is alive: end it first" reap --evict="$b" "$base-a"
one_line 1 'Process .* is alive' reap --evict='#1' "$base-a"
one_line 1 'No such process is attached' reap --evict=1 "$base-a"
one_line 1 'No such process is attached' reap --evict='#8' "$base-a"

kill -9 "$b"
wait "$b" 2>/dev/null
expect 0 "pid $b +dead +3 calls +3 permits" stat -m "$base-a"
expect 0 "^$base-a +10 +9 " stat "$base-a"
one_line 0 "^$base-a: 1 dead process, 3 permits returned\$" reap "$base-a"
expect 0 "^$base-a +10 +6 " stat "$base-a"

# By name, although all who are dead could be reaped.
kill -9 "$c"
wait "$c" 2>/dev/null
one_line 0 "^$base-a: 1 dead process, 4 permits returned\$" reap --evict="$c" "$base-a"
expect 0 "^$base-a +10 +2 .* [1-9]\$" stat "$base-a"

# Again and again, and it tells of what is new.
hold d 4 "$base-a" -
tell d 4 acquire 1
"$weir" reap -i 0.1 "$base-a" >"$work/reaper" &
reaper=$!
kill -9 "$d"
wait "$d" 2>/dev/null
wait_for grep -qsx "$base-a: 1 dead process, 1 permit returned" "$work/reaper"
kill "$reaper"
wait "$reaper" 2>/dev/null
[ "$(wc -l <"$work/reaper")" = 1 ] || complain "it reports nothing new: $(cat "$work/reaper")"

expect 0 "^$base-a: no dead processes\$" reap -- "$base-a"

# All limiters. A test must not reap what others share on this machine, so this is done where there
# is nothing else.
alone='unshare --mount'
[ "$(id -u)" = 0 ] || alone='unshare --map-root-user --mount'
if $alone true 2>/dev/null; then
	$alone sh "$0" "$weir" "$holder" all 3>&- || complain 'not all are reaped'
else
	echo 'namespaces are not to be had: no test of all limiters'
fi

# With a closed pipe as output, it has detached before the signal ends it.
(sleep 0.2 && exec "$weir" reap "$base-a") | :
! "$weir" stat -m "$base-a" | grep -q " dead " || complain 'a reaper died at its seat'
exec 3>&-
wait "$a" || complain 'the holder failed'
exit $failed
