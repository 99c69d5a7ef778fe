#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each function that may fail for want of memory, by its header, is in a table of these tests: its
# comment says ENOMEM, or names others whose errors it hands on. covered.sh HEADER... -- PROGRAM...
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

headers=
while [ "$1" != -- ]; do
	headers="$headers $1"
	shift
done
shift

# The functions below a comment share it. One that says "the same" or "likewise" continues the one
# before, and one may refer to a function above it. Where the comment at the top of a header lists
# errors of all functions, those that return int have them.
# shellcheck disable=SC2086
awk '
FNR == 1 { top = 1; every = may = before = inside = 0 }
/^\/\*/ {
	before = may
	may = 0
	inside = 1
}
inside && /The same|likewise/ { may = may || before }
inside && match($0, /(As|failure of) weir_[a-z0-9_]+/) {
	other = substr($0, RSTART, RLENGTH)
	sub(/.* /, "", other)
	may = may || other in flagged
}
inside && /ENOMEM|[Oo]ther errors are those of/ {
	if (top)
		every = 1
	else
		may = 1
}
inside && /\*\// { inside = 0; next }
/^#ifndef/ { top = 0 }
/^(struct|enum|typedef|#define)/ { may = 0 }
/^WEIR_API/ && match($0, /weir_[a-z0-9_]+\(/) {
	name = substr($0, RSTART, RLENGTH - 1)
	if (may || (every && /^WEIR_API (WEIR_MUST_CHECK )?int /)) {
		flagged[name] = 1
		print name
	}
}
' $headers | sort -u >"$work/may"

for program; do
	"$program" --list
done | sort -u >"$work/tested"

# shellcheck disable=SC2086
grep -ho 'weir_[a-z0-9_]*(' $headers | tr -d '(' | sort -u >"$work/public"

status=0
for name in $(comm -23 "$work/may" "$work/tested"); do
	echo "$name() may return -ENOMEM, and no case in tests/failures has it"
	status=1
done
for name in $(comm -13 "$work/public" "$work/tested"); do
	echo "$name() is in tests/failures, and in no header"
	status=1
done
echo "$(wc -l <"$work/may") functions may return -ENOMEM; $(wc -l <"$work/tested") are tested"
exit $status
