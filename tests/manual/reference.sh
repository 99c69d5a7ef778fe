#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# reference.sh DOXYFILE WORK_DIR LIBRARY... - doxygen makes the HTML reference without a warning, and
# it describes every function.
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

found=0
for name in $(nm -D --defined-only "$@" | awk 'NF == 3 && $2 == "T" { print $3 }'); do
	found=$((found + 1))
	# Its definition, up to the description, which is not empty.
	if ! grep -h -A 40 "<name>$name</name>" "$work"/xml/*_8h.xml |
		grep -m 1 -A 1 '<detaileddescription>\|</memberdef>' | grep -q '<para>'; then
		echo "$name has no description"
		failed=1
	fi
done

echo "$found functions"
[ "$found" -gt 0 ] || exit 1
exit "$failed"
