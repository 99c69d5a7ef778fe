#!/bin/sh
# install.sh WORK_DIR - installs the packages below a root of our own, whose records have what the
# machine has of our dependencies; no file of the machine is touched.
set -eu

work=$1
. "$(dirname "$0")/common.sh"

rm -rf "$root"
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"
for package in libc6 libck0 libck-dev libconfig9 libjansson4 libncursesw6 libtinfo6; do
	dpkg-query -s "$package:$arch"
	echo
	# shellcheck disable=SC2016
	: >"$root/var/lib/dpkg/info/$(dpkg-query -f '${binary:Package}' -W "$package:$arch").list"
done >"$root/var/lib/dpkg/status"

dpkg_below -i "$debs"/*.deb
