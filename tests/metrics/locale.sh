#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# locale.sh WEIR_PRINT_METRICS - the text is the same in a locale with a decimal comma.
set -u

print=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! localedef -i de_DE -f UTF-8 "$work/de_DE.UTF-8" 2>/dev/null; then
	echo "SKIPPED: Debian's locales are missing"
	exit 77
fi

german()
{
	LOCPATH=$work LC_ALL=de_DE.UTF-8 "$print" "$@"
}

if [ "$(german point)" != , ]; then
	echo "FAILED: this locale has no decimal comma" >&2
	exit 1
fi
for format in openmetrics prometheus; do
	german "$format" >"$work/german" && LC_ALL=C "$print" "$format" >"$work/plain" &&
		grep -q '[0-9]\.[0-9]' "$work/plain" && cmp "$work/german" "$work/plain" || exit 1
done
echo "the locale makes no difference"
