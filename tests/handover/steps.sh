#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# steps.sh PAGE MODEL... - the steps of the page's tables are those of the models: an inline with that
# name, or a comment "step: NAME, NAME".
set -uo pipefail

page=$1
shift

in_page()
{
	awk -F'|' '/^\| step \|/ { within = 1; next } !/^\|/ { within = 0 }
		within && $2 !~ /-/ { gsub(/[` ]+/, " ", $2); gsub(/^ | $/, "", $2); print $2 }' "$page" |
		sort -u
}

annotated()
{
	sed -n 's|.*/[*] step: \([a-z, ]*[a-z]\).*|\1|p' "$@" | tr ',' '\n' | sed 's/^ *//; s/ *$//'
}

inlines()
{
	sed -n 's/^inline \([a-z_]*\)(.*/\1/p' "$@" | tr '_' ' '
}

missing=$(comm -23 <(in_page) <( (annotated "$@"; inlines "$@") | sort -u))
strange=$(comm -13 <(in_page) <(annotated "$@" | sort -u))
[ -z "$missing" ] || printf 'not in a model:\n%s\n' "$missing"
[ -z "$strange" ] || printf 'not in %s:\n%s\n' "$page" "$strange"
[ -n "$(in_page)" ] && [ -z "$missing$strange" ]
