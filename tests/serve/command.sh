#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# command.sh WEIR SERVE - weir fleet serve, and what weir-fleet-serve says to wrong options.
set -u

work=$(mktemp -d)
store=shm:/serve-command-$$
pid=''
failed=0
unset WEIR_FLEET

clean_up()
{
	[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null
	rm -rf "$work" "/dev/shm/serve-command-$$"
}
trap clean_up EXIT

complain()
{
	printf 'FAILED: %s\n' "$*" >&2
	failed=1
}

# expect STATUS PATTERN COMMAND...: it exits with that status, and its output has the pattern
expect()
{
	status=$1 pattern=$2
	shift 2
	"$@" >"$work/out" 2>&1 </dev/null
	got=$?
	[ "$got" = "$status" ] || complain "$*: status $got, not $status: $(cat "$work/out")"
	grep -qE -e "$pattern" "$work/out" || complain "$*: no \"$pattern\" in $(cat "$work/out")"
}

# serves COMMAND...: it listens, and ends in order
serves()
{
	: >"$work/out"
	"$@" >"$work/out" 2>&1 </dev/null &
	pid=$!
	until grep -q '^listening on 127.0.0.1:[0-9]*$' "$work/out"; do
		kill -0 "$pid" 2>/dev/null || { complain "$*: $(cat "$work/out")"; return; }
		sleep 0.05
	done
	kill -TERM "$pid"
	wait "$pid" || complain "$*: status $?: $(cat "$work/out")"
	pid=''
}

# The program beside weir is taken, or else the one in the PATH.
mkdir "$work/bin" "$work/other"
cp "$1" "$work/bin/weir"
weir=$work/bin/weir
serve=$2
PATH=/usr/bin:/bin expect 1 '^weir: weir-fleet-serve is not installed' "$weir" fleet serve
ln -s "$serve" "$work/other/weir-fleet-serve"
PATH=$work/other:$PATH
export PATH
expect 0 'Answer Envoy' "$weir" fleet serve --help
serves "$weir" fleet serve --address "$store" --listen 127.0.0.1:0
serves "$weir" fleet -a "$store" serve --listen 127.0.0.1:0 --metrics 127.0.0.1:0
grep -q '^metrics on port [1-9]' "$work/out" || complain "no metrics: $(cat "$work/out")"
printf '#!/bin/sh\necho beside "$@" "$WEIR_FLEET"\n' >"$work/bin/weir-fleet-serve"
chmod +x "$work/bin/weir-fleet-serve"
expect 0 "^beside --ttl 3 $store$" "$weir" fleet -a "$store" serve --ttl 3

# Wrong options are usage errors; what cannot be used is one line.
expect 64 "the store's address is missing" "$serve"
for options in '--ttl 0' '--ttl 1.5' '--ttl 9' '--delivery 0' '--delivery nan' '--lease 1' '--idle x' \
	'--streams 0' '--buckets -1' '--strategy none' '--cert x' '--key x' '--ca x' '--learning -1' \
	'extra' '--nonsense'; do
	# shellcheck disable=SC2086
	expect 64 '^Try |: ' "$serve" --address "$store" $options
done
# refused PATTERN OPTION...
refused()
{
	pattern=$1
	shift
	expect 1 "^weir-fleet-serve: .*$pattern" "$serve" --address "$store" "$@"
}
refused 'no/file: It cannot be read' --listen 127.0.0.1:0 --cert no/file --key no/file
refused 'listen 127.0.0.1:x:' --listen 127.0.0.1:x
refused 'metrics 127.0.0.1: it is not HOST:PORT' --listen 127.0.0.1:0 --metrics 127.0.0.1
refused 'metrics 192.0.2.1:9: ' --listen 127.0.0.1:0 --metrics 192.0.2.1:9
refused 'label' --label 'no label'
echo nonsense >"$work/nonsense"
refused 'certificate' --listen 127.0.0.1:0 --cert "$work/nonsense" --key "$work/nonsense"
expect 1 '^weir-fleet-serve: ' "$serve" --address nowhere://x
exit "$failed"
