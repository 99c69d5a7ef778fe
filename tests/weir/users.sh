#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# users.sh WEIR HOLDER - limiters of other users are left out unless they are asked for.
set -u
. "$(dirname "$0")/common.sh"
[ "$(id -u)" = 0 ] || { echo 'There is no second user to be: skipped.'; exit 77; }

# It reaps all limiters, so it has limiters of its own, in a mount namespace of its own.
if [ "${3-}" != alone ]; then
	unshare --mount true 2>/dev/null || { echo 'There are no namespaces: skipped.'; exit 77; }
	unshare --mount sh "$0" "$weir" "$holder" alone
	exit
fi
mount -t tmpfs none /dev/shm || fail 'no /dev/shm of its own'

hold a 3 "$base-own" fixed:limit=10
hold b 4 "$base-other" fixed:limit=10
hold c 5 "$base-open" fixed:limit=10
chown 65534:65534 "/dev/shm$base-other"
chmod 666 "/dev/shm$base-open"
other=$(id -nu 65534 2>/dev/null || echo 65534)

# listed NAME COMMAND...: it is, or with ! it is not, in what the command prints.
listed()
{
	not=''
	[ "$1" != ! ] || { not=1; shift; }
	which=$1
	shift
	"$weir" "$@" >"$work/out" 2>"$work/err" # its status is that of other tests' limiters too
	if grep -q -e "$which" "$work/out"; then
		[ -z "$not" ] || complain "weir $*: $which is shown"
	else
		[ -n "$not" ] || complain "weir $*: $which is not shown: $(cat "$work/out" "$work/err")"
	fi
}

for command in stat 'stat --json' 'stat --openmetrics' reap; do
	# A command and its options.
	# shellcheck disable=SC2086
	{
		listed "$base-own" $command
		listed ! "$base-other" $command
		[ "$(grep -c '^weir: Left out: [0-9]* of other users (.*), see --user; ' "$work/err")" = 1 ] ||
			complain "$command: nothing said: $(cat "$work/err")"
		grep -q -e "$other" "$work/err" || complain "$command: no user: $(cat "$work/err")"
		listed ! "$base-open" $command
		listed "$base-other" $command --user="$other"
		listed "$base-other" $command -u 1 -u 65534
		listed ! "$base-open" $command --user="$other"
		listed ! "$base-other" $command -u 1
		listed "$base-other" $command "$base-other"
		listed "$base-open" $command "$base-open"
		[ ! -s "$work/err" ] || complain "$command: $(cat "$work/err")"
	}
done

# It is said once, however often the limiters are read.
"$weir" stat -i 0.1 -c 3 >"$work/out" 2>"$work/err"
[ "$(grep -c 'Left out' "$work/err")" = 1 ] || complain "not once: $(cat "$work/err")"
"$weir" reap -i 0.1 -c 3 >"$work/out" 2>"$work/err"
[ "$(grep -c 'Left out' "$work/err")" = 1 ] || complain "not once: $(cat "$work/err")"

expect 0 '' set "$base-other" shadow=on
expect 0 '' set "$base-open" shadow=on
one_line 64 'no such user: no-such-user' stat --user=no-such-user
one_line 64 'no such user: -1' reap --user=-1
one_line 64 'no such user: 4294967295' stat --user=4294967295

# From the other side: root is trusted, a third user is not.
if command -v setpriv >/dev/null && setpriv --reuid=65534 --clear-groups test -x "$weir"; then
	chmod 644 "/dev/shm$base-own"
	chmod 644 "/dev/shm$base-other"
	chown 1:1 "/dev/shm$base-open"
	chmod 644 "/dev/shm$base-open"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$weir" stat >"$work/out" 2>"$work/err" ||
		complain "as another user: $(cat "$work/err")"
	grep -q -e "$base-own" "$work/out" || complain "root's is not shown: $(cat "$work/out")"
	grep -q -e "$base-other" "$work/out" || complain "its own is not shown: $(cat "$work/out")"
	! grep -q -e "$base-open" "$work/out" || complain "a third user's is shown: $(cat "$work/out")"
fi

exec 3>&- 4>&- 5>&-
exit $failed
