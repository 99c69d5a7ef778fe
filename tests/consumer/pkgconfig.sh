#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# pkgconfig.sh SOURCE_DIR PREFIX LIBDIR WORK_DIR - build with a compiler and pkg-config only.
set -eu

source=$1
prefix=$2
libdir=$prefix/$3
work=$4

export PKG_CONFIG_PATH="$libdir/pkgconfig"
rm -rf "$work"
mkdir -p "$work"

# Flags must split into words.
# shellcheck disable=SC2046
{
	cc -std=c11 "$source/use.c" $(pkg-config --cflags --libs weir) -o "$work/shared"
	c++ -std=c++11 "$source/use.cpp" $(pkg-config --cflags --libs weir) -o "$work/shared-cpp"

	# In a folder without the shared library, only the archive can be linked.
	mkdir "$work/archive"
	cp "$libdir/libweir.a" "$work/archive"
	cc -std=c11 "$source/use.c" $(pkg-config --cflags weir) -L"$work/archive" \
		$(pkg-config --static --libs weir | sed "s|-L[^ ]*||") -o "$work/archived"

	cc -static -std=c11 "$source/use.c" $(pkg-config --static --cflags --libs weir) \
		-o "$work/static"
}

LD_LIBRARY_PATH=$libdir "$work/shared"
LD_LIBRARY_PATH=$libdir "$work/shared-cpp"
"$work/archived"
"$work/static"
