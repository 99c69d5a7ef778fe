#!/bin/sh
# contents.sh SOURCE_DIR WORK_DIR VERSION - what is in which package, and what that depends on.
set -u

source=$1
work=$2
version=$3
. "$(dirname "$0")/common.sh"

library=libweir${version%%.*}
libdir=./usr/lib/$multiarch

deb()
{
	echo "$debs/$1_${version}_$arch.deb"
}

field()
{
	dpkg-deb -f "$(deb "$1")" "$2"
}

# files PACKAGE: all paths but folders
files()
{
	dpkg-deb --fsys-tarfile "$(deb "$1")" | tar -t | grep -v '/$' | sort
}

# expect PACKAGE FIELD PATTERN
expect()
{
	field "$1" "$2" | grep -qE "$3" || complain "$1: $2: $(field "$1" "$2")"
}

# documents PACKAGE: what each must have
documents()
{
	printf './usr/share/doc/%s/%s\n' "$1" changelog.gz "$1" copyright
}

# holds PACKAGE: reads the list of files that it must have, no more and no fewer
holds()
{
	{ cat && documents "$1"; } | sort >"$work/expected"
	files "$1" >"$work/found"
	diff "$work/expected" "$work/found" >"$work/difference" ||
		complain "$1 is not what it should be: $(cat "$work/difference")"
}

# pages SECTION...: of those that were made
pages()
{
	for section; do
		(cd "$work/build/man" && find "man$section" -name '*.[1-8]') |
			sed 's|.*|./usr/share/man/&.gz|'
	done
}

fields()
{
	for package in "$library" libweir-dev weir-tools; do
		[ -e "$(deb "$package")" ] || { complain "there is no $package"; exit 1; }
		expect "$package" Source '^weir$'
		expect "$package" Maintainer '^.* <.*@.*>$'
		expect "$package" Description '^adaptive concurrency limits - '
		[ -z "$(dpkg-deb --ctrl-tarfile "$(deb "$package")" | tar -t | grep -E '(inst|rm)$')" ] ||
			complain "$package has scripts"
	done
	expect "$library" Multi-Arch '^same$'
	expect "$library" Depends 'libc6 \(>= .*libck0 \(>= '
	expect libweir-dev Multi-Arch '^same$'
	expect libweir-dev Depends "$library \\(= $version\\)"
	expect libweir-dev Depends 'libck-dev \(>= '
	expect weir-tools Depends 'libc6 \(>= '
	[ "$(dpkg-deb -I "$(deb "$library")" triggers)" = 'activate-noawait ldconfig' ] ||
		complain "$library does not call for ldconfig"
	dpkg-deb -I "$(deb "$library")" shlibs |
		grep -q "^libweir ${version%%.*} $library (>= $version)" ||
		complain "$library does not say who provides it"
	[ "$(dpkg-parsechangelog -l "$source/packaging/changelog" -S Version)" = "$version" ] ||
		complain "packaging/changelog does not begin with version $version"
}

contents()
{
	holds "$library" <<-END
		$libdir/libweir.so.${version%%.*}
		$libdir/libweir.so.$version
	END
	holds libweir-dev <<-END
		$(cd "$source" && find include/weir -name '*.h' -o -name '*.hpp' | sed 's|^|./usr/|')
		$libdir/libweir.a
		$libdir/libweir.so
		$libdir/cmake/weir/weir-config-version.cmake
		$libdir/cmake/weir/weir-config.cmake
		$libdir/cmake/weir/weir-targets-release.cmake
		$libdir/cmake/weir/weir-targets.cmake
		$libdir/pkgconfig/weir.pc
		./usr/share/doc/libweir-dev/service.md
		./usr/share/doc/libweir-dev/writing-a-limit.md
		$(cd "$source" && find examples -name '*.[ch]' -o -name '*.cpp' |
			sed 's|^|./usr/share/doc/libweir-dev/|')
		$(pages 3 7)
	END
	# Each program has its page, and its plots but for those of scripts.
	holds weir-tools <<-END
		$(cd "$source" && find plots -name '*.gp' | grep -vE '/(demo|micro)\.gp$' |
			sed 's|^|./usr/share/weir/|')
		$(pages 1)
		$(pages 1 | sed 's|share/man/man1|bin|; s|\.1\.gz$||')
	END
}

fields
contents
exit "$failed"
