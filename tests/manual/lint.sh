#!/bin/sh
# lint.sh MAN_DIR - every page is one that mandoc, groff and the index of pages understand.
set -u

man=$1
failed=0

for tool in mandoc man lexgrog; do
	command -v "$tool" >/dev/null || { echo "SKIPPED: $tool is missing"; exit 77; }
done

# complain PAGE LINES
complain()
{
	[ -z "$2" ] && return
	printf '%s:\n%s\n' "$1" "$2"
	failed=1
}

found=0
for page in "$man"/man[1-8]/*.[1-8]; do
	if [ -L "$page" ]; then
		[ -e "$page" ] || complain "$page" "leads nowhere"
		continue
	fi
	found=$((found + 1))
	complain "$page" "$(mandoc -Tlint -W warning "$page" 2>&1)"
	complain "$page" "$(LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)"
	lexgrog "$page" >/dev/null 2>&1 || complain "$page" "has no NAME, or none with a text"
done

echo "$found pages"
[ "$found" -gt 0 ] || exit 1
exit "$failed"
