#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shapes.sh SOURCE_DIR WORK_DIR - the pages of headers that have all shapes there are. Where they
# are meant to have changed, copy WORK_DIR/pages over tests/manual/shapes.txt.
set -eu

source=$1
work=$2

rm -rf "$work"
mkdir -p "$work/include/weir" "$work/man3"
cp "$source"/tests/manual/shapes.h* "$work/include/weir"
set --
for script in "$source"/docs/man/section3/*.awk; do
	set -- "$@" -f "$script"
done
awk -v out="$work/man3" -v version=1.2.3 -v date=2026-01-02 "$@" "$work"/include/weir/*

cd "$work/man3"
for page in *; do
	if [ -L "$page" ]; then
		printf '### %s -> %s\n' "$page" "$(readlink "$page")"
	else
		printf '### %s\n' "$page"
		cat "$page"
	fi
done >"$work/pages"
diff "$source/tests/manual/shapes.txt" "$work/pages"
