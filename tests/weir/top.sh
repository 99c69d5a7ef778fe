#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# top.sh WEIR HOLDER SCREEN - weir top on a terminal: what is seen, keys, signals, and what it leaves.
set -u
. "$(dirname "$0")/common.sh"
export TERM=xterm-256color

# play WHAT COLUMNSxROWS ARGUMENT...: the script comes from standard input
play()
{
	what=$1 size=$2
	shift 2
	"$screen" "$size" "$weir" top -i 0.1 "$@" || complain "$what"
}

hold a 3 "$base-a" vegas:initial=20 live=0.6 batch=0.3
hold b 4 "$base-b" settable:initial=7
tell a 3 acquire 3 live
tell b 4 acquire 9
tell a 3 serve

play 'the list' 100x24 <<END
expect ^weir top  [0-9]+ shared limiters? .*[0-9][0-9]:[0-9][0-9]:[0-9][0-9]\$
expect ^NAME\* +LIMIT +INFL +WAIT +RTT +ADMIT/S +REJ/S +DROP/S  USED, 6s
expect ^$base-a .* [▁▂▃▄▅▆▇█]{6}
expect ^$base-b +7 +7 +0 +- +0 +0 +0 +█{6}
absent live
type p
expect ^  live .* 3 +0 +0 +0 +0 +[▁▂▃▄▅▆▇█]{6}
type p
absent live
type /-b
expect ^Names with: -b_
key enter
expect with "-b"
absent $base-a
type /
key escape
expect $base-a
type s
expect LIMIT\*
type S
expect NAME\*
type h
expect ^In the list
type x
expect NAME\*
type q
exited 0
restored
END

play 'details' 80x24 -- "$base-a" "$base-b" <<END
expect ^weir top  2 shared limiters
expect -a
key enter
expect ^weir top  $base-a
expect ^vegas:initial=20,max=1000,
expect ^limit from 1 to 200, windows of 100ms to 1.00s
expect ^queue of 10, oldest first; 1 of 8 processes
expect ^admit/s +[1-9].* [▁▂▃▄▅▆▇█]{6}
expect ^estimate [0-9]
expect ^live +0.6
size 80x15
type h
expect ^In the list
type x
expect ^vegas
key down
absent vegas:initial
size 80x40
expect vegas:initial
expect ^ +1 +$a +
size 40x8
expect ^weir top
size 20x3
expect ^weir top
size 80x24
expect ^in flight
type q
expect ^NAME
key down
key enter
expect ^settable:initial=7
key escape
expect ^NAME
type q
exited 0
restored
END

# One name: its details at once. It goes, once it has been seen.
hold c 5 "$base-c" fixed
"$screen" 80x24 "$weir" top -i 0.1 "$base-c" 3>&- 4>&- 5>&- <<END &
expect ^fixed:limit=
text $work/seen
absent ^fixed
expect ^The limiter was removed
expect No such file
signal TERM
killed TERM
restored
END
player=$!
wait_for [ -s "$work/seen" ]
exec 5>&-
wait "$c"
wait $player || complain 'one that goes'

play 'pause' 80x24 -- "$base-a" <<END
expect ^fixed|^vegas
key space
expect paused
key space
absent paused
key ctrl-c
killed INT
restored
END

for signal in TERM INT HUP QUIT; do
	play "signal $signal" 80x24 <<-END
		expect ^NAME
		signal $signal
		killed $signal
		restored
	END
done

# Stopped, the terminal is its owner's; then it goes on.
play 'stopping' 80x24 <<END
expect ^NAME
key ctrl-z
stopped
restored
signal CONT
running
expect ^NAME
signal STOP
stopped
signal CONT
expect ^NAME
type q
exited 0
restored
END

# Plain terminals: no colours, no UTF-8.
export TERM=vt100 LC_ALL=C
play 'ASCII' 80x24 -- "$base-a" "$base-b" <<END
expect -b .* #######
type q
exited 0
ascii
END
export TERM=xterm LC_ALL=C.UTF-8
play 'ASCII, asked for' 80x24 --ascii -- "$base-a" "$base-b" <<END
expect -b .* #######
type q
exited 0
ascii
restored
END
export TERM=xterm-256color

# Terminals that are none, and a name that is none.
TERM=dumb play 'a dumb terminal' 80x24 <<END
expect A terminal of type dumb cannot show it
exited 1
restored
END
TERM=nonsense play 'an unknown terminal' 80x24 <<END
expect A terminal of type nonsense cannot show it
exited 1
restored
END
play 'no such name' 200x24 -- "$base-missing" <<END
expect $base-missing: cannot be opened: No such file
exited 1
restored
END

# Where calls are refused it is seen without colours, too.
tell b 4 serve
play 'refusals' 100x24 -- "$base-a" "$base-b" <<END
expect ^$base-b +7 +7 +0 +- +0 +[1-9]
key up
bold ███
type q
exited 0
END

# Many more than there are rows: the chosen one is always seen.
tell a 3 calls 1
tell b 4 calls 1
play 'a low screen' 80x5 --partitions -- "$base-a" "$base-b" <<END
expect ^NAME
key end
expect -b
key home
expect -a
type q
exited 0
END
exec 3>&- 4>&-
wait "$a" "$b" || complain 'a holder failed'
exit $failed
