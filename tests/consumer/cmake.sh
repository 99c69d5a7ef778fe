#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# cmake.sh CMAKE SOURCE_DIR PREFIX WORK_DIR - find_package(weir), weir::weir and weir::static.
set -eu

cmake=$1
source=$2
prefix=$3
work=$4

rm -rf "$work"
"$cmake" -S "$source" -B "$work" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release
"$cmake" --build "$work"
for program in use-c-weir use-c-static use-cpp-weir use-cpp-static; do
	printf '%s: ' "$program"
	"$work/$program"
done
