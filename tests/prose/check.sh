#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check.sh SOURCE_DIR - words that plain technical English does without, in docs, headers, code and
# comments. A floor: that a text has none of them does not make it good.
#
# A thread, a process or a caller is "it", or is named: no thread, another process, the caller.
set -u

here=$(cd "$(dirname "$0")" && pwd)
cd "$1" || exit 2

# words FILE: a regular expression, of a list with a word or an expression on each line
words()
{
	grep -vE '^(#|$)' "$1" | paste -s -d '|'
}

# Texts of others, and this folder, stay out: licences, recorded results, generated pages.
files()
{
	find . \( -name .git -o -name 'build*' -o -name demo-out -o -path ./tests/prose -o \
		-path ./bench/results -o -path ./tests/fuzz/corpus \) -prune -o -type f \
		\( -name '*.md' -o -name '*.h' -o -name '*.hpp' -o -name '*.c' -o -name '*.cpp' \
		-o -name '*.sh' -o -name '*.lua' -o -name '*.gp' -o -name '*.cfg' \) -print | sort
}

# search LIST OPTION...: file:line:text without the lines that allowed.txt has. What a changelog says
# of the past may use old names.
search()
{
	pattern=$(words "$1")
	shift
	# File names have no blanks.
	# shellcheck disable=SC2046
	grep -nE "$@" -e "$pattern" /dev/null $(files) | sed 's|^\./||' |
		grep -vE '^CHANGELOG\.md:' | grep -vE "$(words "$here/allowed.txt")"
}

found=$(search "$here/words.txt"; search "$here/names.txt")
[ -z "$found" ] && exit 0
printf '%s\n' "$found"
printf '%d lines have words of tests/prose/words.txt or names.txt\n' \
	"$(printf '%s\n' "$found" | wc -l)"
exit 1
