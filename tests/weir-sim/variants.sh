#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# variants.sh WEIR_SIM SOURCE_DIR - the scenarios in bench/variants can be run; they cover all built-in
# families, and their names differ from those of built-in scenarios.
set -u
. "$(dirname "$0")/common.sh"
variants=$source/bench/variants

# of SETTING FILE...: its values in scenarios, one per line
of()
{
	setting=$1
	shift
	sed -n "s/^$setting = \"\(.*\)\";\$/\1/p" "$@" | sort
}

expect 0 '^# diurnal-single: ' run -l vegas -s "$variants" -r 1
sed -n 's/^# \([^:]*\): .*/\1/p' "$work/out" | sort >"$work/ran"
for file in "$variants"/*.cfg; do
	basename "$file" .cfg
done | sort >"$work/files"
[ "$(wc -l <"$work/files")" -gt 30 ] || complain "there are only $(wc -l <"$work/files") variants"
diff "$work/files" "$work/ran" || complain 'a variant is not named like its file, or was not run'

of name "$source"/bench/scenarios/*.cfg | comm -12 - "$work/files" >"$work/both"
[ -s "$work/both" ] && complain "both built in and a variant: $(cat "$work/both")"
of family "$source"/bench/scenarios/*.cfg | uniq >"$work/families"
of family "$variants"/*.cfg | uniq | diff "$work/families" - ||
	complain 'the families of variants are not those of built-in scenarios'
of about "$variants"/*.cfg | grep -v '\.$' && complain 'a description is not a sentence'
[ "$(of about "$variants"/*.cfg | uniq | wc -l)" = "$(wc -l <"$work/files")" ] ||
	complain 'two variants have the same description, or one has none'
exit "$failed"
