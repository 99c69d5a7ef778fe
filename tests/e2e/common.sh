# SPDX-License-Identifier: BSD-2-Clause
# Shared functions of the end-to-end tests. They check results, never speed: they wait for a state
# with a generous timeout, and no result depends on the time that this takes.
# shellcheck shell=sh disable=SC2034

work=$(mktemp -d)
pids=''

clean_up()
{
	# shellcheck disable=SC2086
	[ -z "$pids" ] || kill -9 $pids 2>/dev/null
	rm -rf "$work"
}
trap clean_up EXIT

fail()
{
	echo "FAILED: $*" >&2
	for log in "$work"/*.log; do
		[ ! -s "$log" ] || { echo "--- $log"; cat "$log"; } >&2
	done
	exit 1
}

skip()
{
	echo "SKIPPED: $*"
	exit 77
}

# need_programs PATH...: built programs, and curl
need_programs()
{
	for program in "$@"; do
		[ -x "$program" ] || skip "the examples are not built: libmicrohttpd or sqlite3 missing"
	done
	command -v curl >/dev/null || skip "curl is missing"
}

# Run a command until it succeeds, for some minutes at most.
wait_for()
{
	tries=4000
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || fail "never came true: $*"
		sleep 0.05
	done
}

server_says_port()
{
	port=$(sed -n 's/^listening on 127.0.0.1://p' "$work/server.log")
	[ -n "$port" ] || ! kill -0 "$server" 2>/dev/null
}

# start PROGRAM [ARGUMENT]...: sets server and port
start()
{
	: >"$work/server.log"
	: >"$work/errors.log"
	"$@" >>"$work/server.log" 2>>"$work/errors.log" &
	server=$!
	pids="$pids $server"
	wait_for server_says_port
	[ -n "$port" ] || fail "did not start: $*"
	url=http://127.0.0.1:$port
}

# End the server with a signal, and check its exit.
stop()
{
	kill -TERM "$server"
	wait "$server" || fail "exit code $? after SIGTERM"
	grep -q 'in flight 0$' "$work/server.log" || fail "permits are in use at the end"
	# Clients that disconnect are no error of the server.
	! grep -qv '^Failed to send' "$work/errors.log" || fail "it printed errors"
}
