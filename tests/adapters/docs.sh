#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# docs.sh README PREFIX LIBDIR - checks the program at the start of an adapter's README, built with
# the command below it against the installed library: it compiles without a warning, serves, and
# leaks no permit. A function after the program is compiled too.
set -u
readme=$1 libdir=$2/$3
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
command -v curl >/dev/null || skip "curl is missing"

warnings='-Wall -Wextra -Wpedantic -Wshadow -Wno-unused -Wno-unused-parameter -Werror'

export PKG_CONFIG_PATH="$libdir/pkgconfig" LD_LIBRARY_PATH="$libdir"
awk '/^```/ { fence++; next } fence == 1 || fence == 3' "$readme" >"$work/server.c"
command=$(sed -n '/^    cc /{p;q}' "$readme")
(
	cd "$work" || exit
	eval "$command -std=gnu11 $warnings -o server"
) || fail "the program of $readme does not compile"

mkfifo "$work/input"
sleep 600 >"$work/input" &
holder=$!
pids="$pids $holder"
# shellcheck disable=SC2016
start sh -c 'exec "$1" <"$2"' sh "$work/server" "$work/input"
for _ in 1 2 3; do
	[ "$(code "$url/")" = 200 ] || fail "it does not serve"
done
kill "$holder"
wait "$server" || fail "it ended with $?"
grep -q '^in flight 0$' "$work/server.log" || fail "permits are in use at the end"
echo "the program of the README works"
