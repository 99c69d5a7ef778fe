#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# mutants.sh BUILD_DIR COMPILER [NAME...] - put faults into the library, and see the explorer find
# each of them. BUILD_DIR is the CMake build tree, with the programs of scenes built by COMPILER.
#
# A mutant is a patch in mutants/: PROGRAM.FAULT.patch. The lines above the patch say what is wrong.
# One of them may begin with "Scene:", to explore only that one, and one with "Options:", for the
# program's command line. "Survives:" gives the reason why no run can fail, and "Survives with gcc:"
# or "Survives with clang:" that of a program that only the other compiler makes fail.
#
# Exits with 0 if each was found, or survived for its reason. The last line has the numbers.
set -uo pipefail

if [ $# -lt 2 ]; then
	echo "Usage: mutants.sh BUILD_DIR COMPILER [NAME...]" >&2
	exit 2
fi

source_dir=$(cd "$(dirname "$0")/../.." && pwd)
here=$source_dir/tests/interleave
build=$1
compiler=$2
shift 2

patches=("$here"/mutants/*.patch)
if [ $# -gt 0 ]; then
	patches=("${@/#/$here/mutants/}")
	patches=("${patches[@]/%/.patch}")
fi

work=$(mktemp -d)
killed=0
survived=0
wrong=0

finish()
{
	local tried=$((killed + survived + wrong))

	rm -rf "$work"
	printf '%d mutants found, %d not found for a reason, %d wrong' \
		"$killed" "$survived" "$wrong"
	[ "$tried" = ${#patches[@]} ] || printf ', %d not tried' $((${#patches[@]} - tried))
	printf '\n'
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ ! -f "$build/tests/interleave/libexplorer.a" ]; then
	printf 'mutants.sh: %s has no explorer: configure it and build its programs of scenes, %s\n' \
		"$build" "such as the target interleave-rate" >&2
	exit 2
fi
build=$(cd "$build" && pwd)
family=gcc
if "$compiler" --version | grep -q clang; then
	family=clang
fi

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
# What they depend on is in the files that CMake's makefiles leave beside them.
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
	[ -n "$(ls "$work/objects")" ]
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
	reason=$(header "$1" "Survives\( with $family\)\?")
	if [ ! -x "$build/tests/interleave/interleave-$program" ]; then
		printf '%-44s cannot be made: interleave-%s is not built\n' "$name" "$program"
		wrong=$((wrong + 1))
		return
	fi

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

for patch in "${patches[@]}"; do
	try "$patch"
done
[ "$wrong" = 0 ]
