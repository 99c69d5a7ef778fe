#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tasks.sh SOURCE_DIR PREFIX LIBDIR WORK_DIR - tasks in C++ that exit, are cancelled, and throw.
set -eu

source=$1
prefix=$2
libdir=$prefix/$3
work=$4

export PKG_CONFIG_PATH="$libdir/pkgconfig"
mkdir -p "$work"

# shellcheck disable=SC2046
c++ -std=c++11 -Wall -Wextra -Werror -pthread "$source/tasks.cpp" \
	$(pkg-config --cflags --libs weir) -o "$work/tasks"

LD_LIBRARY_PATH=$libdir "$work/tasks"

# An uncaught exception ends the program, with a message.
cd "$work" # for a core file
if LD_LIBRARY_PATH=$libdir "$work/tasks" uncaught 2>uncaught.log; then
	echo "the program survived an uncaught exception"
	exit 1
fi
grep -q 'an uncaught error' uncaught.log
