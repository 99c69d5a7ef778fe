# SPDX-License-Identifier: BSD-2-Clause
# Shared functions of the tests of the nginx module. Each test has an nginx of its own, on a port
# that the kernel reports as free, with an upstream whose behaviour is set by the path.
# Usage of each test: NAME.sh NGINX MODULE ORIGIN
# shellcheck shell=bash disable=SC2034
nginx=${1:-} module=${2:-} origin=${3:-}

# shellcheck source-path=SCRIPTDIR source=../../../tests/e2e/common.sh
. "$(dirname "$0")/../../../tests/e2e/common.sh"

[ -x "$nginx" ] || skip "there is no nginx"
[ -r "$module" ] || skip "the module is not built"
[ -x "$origin" ] || skip "the upstream of the tests is not built"
command -v curl >/dev/null || skip "there is no curl"

# End the master by SIGTERM: if it were killed, its workers would go on.
end_all()
{
	if [ -n "${nginx_pid:-}" ] && kill -TERM "$nginx_pid" 2>/dev/null; then
		for _ in {1..50}; do
			kill -0 "$nginx_pid" 2>/dev/null || break
			sleep 0.1
		done
	fi
	clean_up
}
trap end_all EXIT

# Workers of a master that runs as root have another user, who cannot read the test's folder.
[ "$(id -u)" != 0 ] || user='user root;'

# start_origin [OPTION]...: sets upstream and origin_pid
start_origin()
{
	: >"$work/origin.port"
	"$origin" "$@" >>"$work/origin.port" &
	origin_pid=$!
	disown
	pids="$pids $origin_pid"
	wait_for test -s "$work/origin.port"
	upstream=127.0.0.1:$(cat "$work/origin.port")
}

# configure HTTP [MAIN]: the text of the http block; "PORT" in it is the server's port
configure()
{
	cat >"$work/nginx.conf" <<-END
	load_module $module;
	${user:-}
	worker_processes 2;
	pid $work/nginx.pid;
	error_log $work/error.log info;
	${2:-}
	events { worker_connections 1024; }
	http {
		client_body_temp_path $work/body;
		proxy_temp_path $work/proxy;
		fastcgi_temp_path $work/fastcgi;
		uwsgi_temp_path $work/uwsgi;
		scgi_temp_path $work/scgi;
		log_format weir '\$uri \$status \$weir_status zone=\$weir_zone partition=\$weir_partition limit=\$weir_limit inflight=\$weir_inflight waited=\$weir_waited rtt=\$weir_rtt';
		access_log $work/access.log weir;
		default_type text/plain;
		$(printf '%s\n' "$1" | sed "s/PORT/$port/g")
	}
	END
}

run_nginx()
{
	"${preload[@]}" "$nginx" -p "$work" -e "$work/error.log" -c "$work/nginx.conf" "$@"
}

# The library of AddressSanitizer must be loaded first. nginx leaks memory at its exit on purpose.
preload=(env)
if [ -n "${WEIR_PRELOAD:-}" ]; then
	preload=(env "LD_PRELOAD=$WEIR_PRELOAD" ASAN_OPTIONS=detect_leaks=0)
fi

serves_status()
{
	curl -s -f -m 100 -o /dev/null "$url/weir"
}

# start_nginx HTTP [MAIN]: sets port, url and nginx_pid. Retries if the port has been taken.
start_nginx()
{
	: >"$work/access.log"
	for _ in 1 2 3 4 5; do
		port=$("$origin" --port)
		configure "$@"
		: >"$work/error.log"
		if run_nginx 2>"$work/start.log"; then
			wait_for test -s "$work/nginx.pid"
			nginx_pid=$(cat "$work/nginx.pid")
			pids="$pids $nginx_pid"
			url=http://127.0.0.1:$port
			wait_for serves_status
			return
		fi
		grep -q 'bind() to' "$work/start.log" || break
	done
	fail "nginx does not start: $(cat "$work/start.log")"
}

# reload [HTTP] [MAIN]: reload, and wait until new workers serve
reload()
{
	local before

	[ $# = 0 ] || configure "$@"
	before=$(grep -c 'start worker processes' "$work/error.log")
	run_nginx -s reload 2>"$work/reload.log" || fail "no reload: $(cat "$work/reload.log")"
	wait_for has_reloaded "$before"
}

has_reloaded()
{
	[ "$(grep -c 'start worker processes' "$work/error.log")" -gt "$1" ]
}

stop_nginx()
{
	kill -QUIT "$nginx_pid"
	wait_for has_ended "$nginx_pid"
	no_errors
}

has_ended()
{
	! kill -0 "$1" 2>/dev/null
}

# Crashes, open sockets at the end, and reports of sanitizers, except for workers that were killed.
no_errors()
{
	grep -hE "exited on signal|\[alert\]|\[emerg\]|ERROR: AddressSanitizer|runtime error" \
		"$work/error.log" "$work/start.log" | grep -v "exited on signal 9" >"$work/complaints"
	[ ! -s "$work/complaints" ] || fail "errors in the log: $(head -n 5 "$work/complaints")"
}

# stat_of NAME [ZONE]: a statistic of a zone
stat_of()
{
	curl -s -m 100 "$url/weir?format=json" | sed 's/{"name":/\n&/g' | sed 's/"partitions":.*//' |
		grep "\"name\":\"${2:-main}\"" | grep -o "\"$1\":[^,}]*" | cut -d: -f2
}

stat_is()
{
	[ "$(stat_of "$1" "${3:-main}")" = "$2" ]
}

is_idle()
{
	stat_is inflight 0 "${1:-main}" && stat_is waiting 0 "${1:-main}"
}

status_of()
{
	curl -s -m 250 -o /dev/null -w '%{http_code}' "$@"
}

# logged PATTERN: whether a line of the access log matches
logged()
{
	grep -qE "$1" "$work/access.log"
}
