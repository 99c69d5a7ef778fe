#!/bin/sh
# docs.sh DOCS_DIR PREFIX WORK_DIR - the limit that the documentation writes is one.
set -eu

docs=$1
prefix=$2
work=$3

mkdir -p "$work"
# The first block between fences.
awk '/^```/ { fence++; next } fence == 1' "$docs/writing-a-limit.md" >"$work/target.c"
cc -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -I"$prefix/include" \
	-c "$work/target.c" -o "$work/target.o"
