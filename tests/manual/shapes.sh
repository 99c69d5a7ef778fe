#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shapes.sh SOURCE_DIR WORK_DIR - what lowdown gets for the pages of headers that have all shapes
# there are. Where that is meant to have changed, copy WORK_DIR/pages over tests/manual/shapes.txt.
set -eu

source=$1
work=$2

rm -rf "$work"
mkdir -p "$work/include/weir" "$work/man3" "$work/bin"
cp "$source"/tests/manual/shapes.h* "$work/include/weir"
printf '#!/bin/sh\necho "$*"\ncat\n' >"$work/bin/lowdown"
chmod +x "$work/bin/lowdown"
PATH=$work/bin:$PATH awk -v version=1.2.3 -v date=2026-01-02 -v filter=/dev/null \
	-f "$source/docs/man/section3.awk" library=weir out="$work/man3" "$work"/include/weir/*

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
