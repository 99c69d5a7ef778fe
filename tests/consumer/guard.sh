#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# guard.sh SOURCE PREFIX LIBDIR WORK_DIR COMPILER FLAG... - weir/weir.hpp with strict warnings.
set -eu

source=$1
libdir=$2/$3
work=$4
cxx=$5
shift 5

warnings='-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wold-style-cast -Weffc++ -Werror'

if ! command -v "$cxx" >/dev/null; then
	echo "SKIPPED: there is no $cxx"
	exit 77
fi
export PKG_CONFIG_PATH="$libdir/pkgconfig"
mkdir -p "$work"

# Flags must split into words.
# shellcheck disable=SC2046,SC2086
"$cxx" "$@" $warnings "$source/guard.cpp" $(pkg-config --cflags --libs weir) -pthread \
	-o "$work/guard"
LD_LIBRARY_PATH=$libdir "$work/guard"
