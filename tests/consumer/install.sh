#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# install.sh CMAKE BUILD_DIR PREFIX - a fresh installation for the other tests.
set -eu

cmake=$1
build=$2
prefix=$3

rm -rf "$prefix"
"$cmake" --install "$build" --prefix "$prefix" >/dev/null
find "$prefix" -type f | sort
