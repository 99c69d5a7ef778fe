#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# build.sh SOURCE_DIR WORK_DIR CMAKE CPACK - the packages, as a packager makes them.
set -eu

source=$1
work=$2
cmake=$3
cpack=$4
. "$(dirname "$0")/common.sh"

rm -rf "$work"
mkdir -p "$debs"
"$cmake" -S "$source" -B "$work/build" -DCMAKE_INSTALL_PREFIX=/usr \
	-DCMAKE_BUILD_TYPE=Release -DWEIR_TESTS=OFF -DWEIR_EXAMPLES=OFF \
	"-DWEIR_ADAPTERS=curl;libevent;microhttpd" # the others take long
"$cmake" --build "$work/build" --parallel 2
cd "$work/build"
"$cpack" -B "$debs"
ls -l "$debs"/*.deb
