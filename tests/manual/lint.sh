#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# lint.sh MAN_DIR - every page is one that mandoc, groff and the index of pages understand.
set -u

man=$1
failed=0

for tool in lowdown mandoc groff lexgrog; do
	command -v "$tool" >/dev/null || { echo "SKIPPED: $tool is missing"; exit 77; }
done

# complain LINES
complain()
{
	[ -z "$1" ] && return
	printf '%s\n' "$1"
	failed=1
}

set --
for page in "$man"/man[1-8]/*.[1-8]; do
	if [ ! -L "$page" ]; then
		set -- "$@" "$page"
	elif [ ! -e "$page" ]; then
		complain "$page: leads nowhere"
	fi
done

# All at once: each of them says which page it means.
complain "$(mandoc -Tlint -W warning "$@" 2>&1)"
complain "$(groff -mandoc -t -ww -K utf8 -Tutf8 -Z "$@" 2>&1 >/dev/null)"
complain "$(lexgrog "$@" 2>&1 | grep 'parse failed')"

echo "$# pages"
[ $# -gt 0 ] || exit 1
exit "$failed"
