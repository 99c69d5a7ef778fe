#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# remove.sh WORK_DIR - takes the packages away again, and nothing of them stays.
set -u

work=$1
. "$(dirname "$0")/common.sh"

packages=$(dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Package} ${Source}\n' |
	awk '$2 == "weir" { print $1 }')
# shellcheck disable=SC2086
dpkg_below --purge $packages || exit 1
left=$(find "$root" -mindepth 1 -path "$root/var" -prune -o -mindepth 1 -print)
[ -z "$left" ] || complain "left behind: $left"
exit "$failed"
