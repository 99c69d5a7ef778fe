#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# mutants.sh BUILD_DIR COMPILER [NAME...] - put faults into the library, and see the explorer find
# each of them. BUILD_DIR is the CMake build tree, with the programs of scenes built by COMPILER.
#
# A mutant is a patch in mutants/: PROGRAM.FAULT.patch. The lines above the patch say what is wrong.
# One of them may begin with "Scene:", to explore only that one, and one with "Options:", for the
# program's command line. "Survives:" gives the reason why no run can fail.
set -uo pipefail

source_dir=$(cd "$(dirname "$0")/../.." && pwd)
here=$source_dir/tests/interleave
build=$(cd "$1" && pwd)
compiler=$2
shift 2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
killed=0
survived=0
wrong=0

# header PATCH KEY: the rest of the line that begins with KEY.
header()
{
	sed -n "/^--- /q; s/^$2: *//p" "$1"
}

flags=(-std=c11 -D_GNU_SOURCE -O2 -g -fno-pie -w -ffp-contract=off -fsanitize=thread
	-fno-builtin-memcpy -fno-builtin-memset)

# source_of OBJECT: the path of its source in the tree.
source_of()
{
	local source=${1##*.dir/}

	source=${source%.o}
	case $source in
	__/__/*) printf '%s' "${source#__/__/}" ;;
	*) printf 'tests/interleave/%s' "$source" ;;
	esac
}

wrapped=("-Wl,--wrap=malloc,--wrap=free,--wrap=calloc,--wrap=realloc,--wrap=memcpy,--wrap=memmove"
	"-Wl,--wrap=memset,--wrap=posix_memalign,--wrap=aligned_alloc")

# members: the library's objects that the program is linked with, as the archive names them.
members()
{
	# shellcheck disable=SC2046
	"$compiler" -no-pie "${wrapped[@]}" -Wl,-Map="$work/map" \
		$(find "$build/tests/interleave/CMakeFiles/interleave-$program.dir" -name '*.o') \
		"$build/tests/interleave/libweir_explored.a" \
		"$build/tests/interleave/libexplorer.a" -lck -lm -o "$work/program" &&
		sed -n 's/.*libweir_explored\.a(\([^)]*\)).*/\1/p' "$work/map" | sort -u
}

# recompile PATCH: the objects that depend on what the patch changes, from the tree with the fault.
recompile()
{
	local changed linked object source
	linked=$(members) || return 1
	changed=$(sed -n 's/^+++ [^/]*\///p' "$1" | cut -f 1)

	while IFS= read -r depends; do
		object=${depends%.d}
		source=$(source_of "$object")
		case $depends in
		*/weir_explored.dir/*) grep -qxF "${object##*/}" <<<"$linked" || continue ;;
		esac
		"$compiler" "${flags[@]}" -I"$work/tree" -I"$work/tree/include" \
			-I"$work/tree/fleet/include" \
			-c "$work/tree/$source" -o "$work/objects/${source//\//_}.o" || return 1
	done < <(find "$build/tests/interleave" \
		\( -path '*weir_explored.dir*' -o -path "*interleave-$program.dir*" \) -name '*.d' \
		-print0 | xargs -0 grep -lF "$(printf '%s\n' "$changed" | sed "s|^|$source_dir/|")")
}

link()
{
	local own=() source

	while IFS= read -r object; do
		source=$(source_of "$object")
		[ -e "$work/objects/${source//\//_}.o" ] || own+=("$object")
	done < <(find "$build/tests/interleave/CMakeFiles/interleave-$program.dir" -name '*.o')
	"$compiler" -no-pie "${wrapped[@]}" \
		"${own[@]}" "$work"/objects/*.o "$build/tests/interleave/libweir_explored.a" \
		"$build/tests/interleave/libexplorer.a" -lck -lm -o "$work/program"
}

# try PATCH
try()
{
	local name scene options reason began=$SECONDS
	name=$(basename "$1" .patch)
	program=${name%%.*}
	scene=$(header "$1" Scene)
	read -ra options <<<"$(header "$1" Options)"
	reason=$(header "$1" Survives)

	rm -rf "$work/tree" "$work/objects"
	mkdir -p "$work/tree/tests" "$work/objects"
	cp -r "$source_dir/lib" "$source_dir/include" "$source_dir/limits" "$work/tree"
	cp -r "$here" "$work/tree/tests"
	[ ! -d "$source_dir/fleet" ] || cp -r "$source_dir/fleet" "$work/tree"
	if ! patch -d "$work/tree" -p1 -s --no-backup-if-mismatch <"$1" ||
		! recompile "$1" || ! link; then
		printf '%-44s cannot be made\n' "$name"
		wrong=$((wrong + 1))
		return
	fi
	"$work/program" --stop ${scene:+--scene "$scene"} "${options[@]}" >"$work/out" 2>&1
	case $?:${reason:+survives} in
	1:)
		killed=$((killed + 1))
		printf '%-44s found, %d s: %s\n' "$name" $((SECONDS - began)) \
			"$(sed -n 's/: FAILED after \([0-9]*\) runs/, run \1/p' "$work/out" | head -n 1)"
		;;
	0:survives)
		survived=$((survived + 1))
		printf '%-44s not found, %d s: %s\n' "$name" $((SECONDS - began)) "$reason"
		;;
	0:)
		wrong=$((wrong + 1))
		printf '%-44s NOT FOUND, %d s\n' "$name" $((SECONDS - began))
		;;
	*)
		wrong=$((wrong + 1))
		printf '%-44s found, or broken, but should not be\n' "$name"
		tail -n 3 "$work/out"
		;;
	esac
}

if [ $# -gt 0 ]; then
	for name; do
		try "$here/mutants/$name.patch"
	done
else
	for patch in "$here"/mutants/*.patch; do
		try "$patch"
	done
fi
printf '%d mutants found, %d not found for a reason, %d wrong\n' "$killed" "$survived" "$wrong"
[ "$wrong" = 0 ]
