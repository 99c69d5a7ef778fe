#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# install.sh WORK_DIR - installs the packages below a root of our own, whose records have what the
# machine has of our dependencies; no file of the machine is touched.
set -eu

work=$1
. "$(dirname "$0")/common.sh"

rm -rf "$root"
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"

# needed: of what any of them depends on, that which is installed; a line each, with alternatives
needed()
{
	for deb in "$debs"/*.deb; do
		dpkg-deb -f "$deb" Depends | tr ',' '\n'
	done | sed -E 's/\([^)]*\)//g; s/[| ]+/ /g' | grep -v '^ *\(lib\)\?weir' | sort -u
}

# Names are several words.
# shellcheck disable=SC2016
needed | while read -r packages; do
	for package in $packages; do
		dpkg-query -s "$package:$arch" 2>/dev/null || continue
		echo
		: >"$root/var/lib/dpkg/info/$(dpkg-query -f '${binary:Package}' -W "$package:$arch").list"
		break
	done
done >"$root/var/lib/dpkg/status"

dpkg_below -i "$debs"/*.deb
