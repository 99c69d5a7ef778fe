#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# reference.sh DOXYFILE WORK_DIR LIBRARY... - doxygen makes the HTML reference without a warning, and
# it describes every function but those that macros call.
set -u

doxyfile=$1
work=$2
shift 2
failed=0

command -v doxygen >/dev/null || { echo "SKIPPED: doxygen is missing"; exit 77; }
mkdir -p "$work"
said=$({ cat "$doxyfile"; echo "OUTPUT_DIRECTORY = $work"; echo "GENERATE_XML = YES"; } |
	doxygen - 2>&1)
if [ -n "$said" ]; then
	echo "$said"
	failed=1
fi

# The functions that have a description.
awk '
/<memberdef / { name = ""; described = 0 }
/<name>/ && name == "" { name = $0; gsub(/ *<[^>]*>/, "", name) }
/<para>/ { described = 1 }
/<\/memberdef>/ && described { print name }' "$work"/xml/*_8h.xml >"$work/described"

found=0
for name in $(nm -D --defined-only "$@" | awk '$2 == "T" && !/_init_sized$/ { print $3 }'); do
	found=$((found + 1))
	grep -qx "$name" "$work/described" || { echo "$name has no description"; failed=1; }
done

echo "$found functions"
[ "$found" -gt 0 ] || exit 1
exit "$failed"
