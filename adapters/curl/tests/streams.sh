#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Usage: streams.sh WEIR_CURL_STREAMS - tests against nghttpd, which cannot let the kernel choose a
# port, so random ports are tried until one is free. Uses TLS, because libcurl 7.88 fails if several
# transfers share a connection without TLS.
set -u
program=$1
# shellcheck source-path=SCRIPTDIR source=../../../tests/e2e/common.sh
. "$(dirname "$0")/../../../tests/e2e/common.sh"
command -v nghttpd >/dev/null || skip "nghttpd is missing: nghttp2-server"

command -v openssl >/dev/null || skip "openssl is missing"

echo "$work" >"$work/file"
openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 2 \
	-keyout "$work/key" -out "$work/certificate" 2>/dev/null || fail "no certificate"

# nghttp exits with 0 where it cannot connect, and another server may have the port: only this
# server's file says that it answers.
answers()
{
	[ "$(nghttp "https://127.0.0.1:$port/file" 2>/dev/null)" = "$work" ] ||
		! kill -0 "$server" 2>/dev/null
}

tries=20
until [ $tries = 0 ]; do
	tries=$((tries - 1))
	port=$(shuf -n 1 -i 1024-32000)
	nghttpd --address=127.0.0.1 -d "$work" "$port" "$work/key" "$work/certificate" \
		>"$work/server.log" 2>&1 &
	server=$!
	pids="$pids $server"
	wait_for answers
	! kill -0 "$server" 2>/dev/null || break
done
kill -0 "$server" || fail "no port is free"

"$program" "https://127.0.0.1:$port/file" || fail "streams"
echo "each stream has a permit"
