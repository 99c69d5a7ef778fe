#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# examples.sh WORK_DIR LIST - the examples that need the library alone, from what is installed.
# A line of the list: a name, and its sources.
set -eu

work=$1
list=$2
. "$(dirname "$0")/common.sh"

[ -s "$list" ] || { echo "SKIPPED: there are no examples"; exit 77; }
export PKG_CONFIG_PATH="$root/usr/lib/$multiarch/pkgconfig"
mkdir -p "$work/examples"
while read -r name sources; do
	case $sources in
	*.cpp) compiler="c++ -std=c++17" ;;
	*) compiler="cc -std=c11" ;;
	esac
	# Flags and sources are several words.
	# shellcheck disable=SC2046,SC2086
	$compiler -D_GNU_SOURCE -pthread $sources $(pkg-config --cflags --libs weir) -lm \
		-o "$work/examples/$name"
	echo "$name"
done <"$list"
