#!/bin/sh
# variants.sh WEIR_SIM SOURCE_DIR - the scenarios of bench/variants can be run; they are of all families
# that are built in, and none is called as one of those.
set -u
. "$(dirname "$0")/common.sh"
variants=$source/bench/variants

# of SETTING FILE...: its values in scenarios, one a line
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
diff "$work/files" "$work/ran" || complain 'a variant is not called as its file, or was not run'

of name "$source"/bench/scenarios/*.cfg | comm -12 - "$work/files" >"$work/both"
[ -s "$work/both" ] && complain "both built in and a variant: $(cat "$work/both")"
of family "$source"/bench/scenarios/*.cfg | uniq >"$work/families"
of family "$variants"/*.cfg | uniq | diff "$work/families" - ||
	complain 'families of variants are not those of the scenarios that are built in'
of about "$variants"/*.cfg | grep -v '\.$' && complain 'no sentence'
[ "$(of about "$variants"/*.cfg | uniq | wc -l)" = "$(wc -l <"$work/files")" ] ||
	complain 'two variants are about the same, or one is about nothing'
exit "$failed"
