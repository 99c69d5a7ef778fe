#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# complete.sh LIBRARY HEADERS_DIR MAN_DIR - everything public has a page, which names it.
set -u

library=$1
headers=$2
man=$3
failed=0

command -v lowdown >/dev/null || { echo "SKIPPED: lowdown is missing"; exit 77; }

# public: what the library exports, and the types and header files that programs see.
public()
{
	nm -D --defined-only "$library" | awk '{ print $3 }'
	sed -n -E 's/^(struct|enum|union) (weir_[a-z0-9_]+) \{$/\2/p' "$headers"/*.h
	for header in "$headers"/*.h; do
		grep -q '^WEIR_API' "$header" && echo "weir_$(basename "$header")"
	done
}

found=0
for name in $(public); do
	found=$((found + 1))
	page=$man/man3/$name.3
	if [ ! -e "$page" ]; then
		echo "$name has no page"
		failed=1
	elif ! sed -n '/^\.SH NAME/,/^\.SH [^N]/p' "$page" | grep -qE "(^|, )$name(,| -)"; then
		echo "the page of $name does not name it"
		failed=1
	fi
done

echo "$found names"
[ "$found" -gt 0 ] || exit 1
exit "$failed"
