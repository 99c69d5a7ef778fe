#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# manual.sh WORK_DIR - man finds the page of every function and every program.
set -u

work=$1
. "$(dirname "$0")/common.sh"

found=0
for name in $(nm -D --defined-only "$root/usr/lib/$multiarch/libweir.so" \
	"$root/usr/lib/$multiarch/libweir-fleet.so" | awk 'NF == 3 { print $3 }') \
	$(ls "$root/usr/bin") weir; do
	found=$((found + 1))
	page=$(man -M "$root/usr/share/man" --path "$name" 2>/dev/null)
	zcat -f "${page:-/dev/null}" | grep -qw "$name" || complain "man $name: nothing"
done
echo "$found names"
exit "$failed"
