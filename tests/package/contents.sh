#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# contents.sh SOURCE_DIR WORK_DIR VERSION - what is in which package, and what that depends on.
set -u

source=$1
work=$2
version=$3
. "$(dirname "$0")/common.sh"

# The ABI's version: while the major is 0, each minor version has its own.
case $version in
0.*) abi=${version%.*} ;;
*) abi=${version%%.*} ;;
esac
library=libweir$abi
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

# pages FOLDER...: of those that were made
pages()
{
	for folder; do
		(cd "$work/build/man" && find "$folder" -name '*.[1-8]') |
			sed 's|.*|./usr/share/man/&.gz|'
	done
}

# adapters: those that were built
adapters()
{
	(cd "$debs" && ls) | sed -n -E "s/^libweir-(.*)-dev_.*/\\1/p" | grep -vx fleet
}

# libraries: all, each by the name that files have
libraries()
{
	printf '%s\n' libweir libweir-fleet
	adapters | sed 's/^/libweir-/'
}

library_fields()
{
	for name in $(libraries); do
		package=$name$abi
		expect "$package" Multi-Arch '^same$'
		expect "$package" Depends 'libc6 \(>= '
		expect "$name-dev" Multi-Arch '^same$'
		expect "$name-dev" Depends "$package \\(= $version\\)"
		[ "$(dpkg-deb -I "$(deb "$package")" triggers)" = 'activate-noawait ldconfig' ] ||
			complain "$package does not call for ldconfig"
		dpkg-deb -I "$(deb "$package")" shlibs |
			grep -qx "$name $abi $package (>= $version)" ||
			complain "$package has a wrong shlibs file"
		[ "$name" = libweir ] && continue
		expect "$package" Depends "$library \\(>= $version\\)"
		expect "$name-dev" Depends "libweir-dev \\(= $version\\)"
	done
}

fields()
{
	for package in weir-tools $(libraries | sed "s/.*/&-dev &$abi/"); do
		[ -e "$(deb "$package")" ] || { complain "there is no $package"; exit 1; }
		expect "$package" Source '^weir$'
		expect "$package" Maintainer '^.* <.*@.*>$'
		expect "$package" Description '^adaptive concurrency limits - '
		[ -z "$(dpkg-deb --ctrl-tarfile "$(deb "$package")" | tar -t | grep -E '(inst|rm)$')" ] ||
			complain "$package has scripts"
	done
	library_fields
	expect "$library" Depends 'libck0 \(>= '
	expect libweir-dev Depends 'libck-dev \(>= '
	expect weir-tools Depends 'libc6 \(>= '
	[ "$(dpkg-parsechangelog -l "$source/packaging/changelog" -S Version)" = "$version" ] ||
		complain "packaging/changelog does not begin with version $version"
}

contents()
{
	holds "$library" <<-END
		$libdir/libweir.so.$abi
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
		$(printf './usr/share/doc/libweir-dev/%s.md\n' choosing classes client cpp operating \
			processes rates server writing-a-limit)
		$(cd "$source" && find examples -name '*.[ch]' -o -name '*.cpp' |
			sed 's|^|./usr/share/doc/libweir-dev/|')
		$(pages man3 man7)
	END
	# Each program has its page, and its plots but for those of scripts.
	holds weir-tools <<-END
		$(cd "$source" && find plots -name '*.gp' | grep -vE '/(demo|micro)\.gp$' |
			sed 's|^|./usr/share/weir/|')
		$(pages man1 | grep -v /weir-fleet-serve)
		$(pages man1 | grep -v /weir-fleet-serve |
			sed 's|share/man/man1|bin|; s|\.1\.gz$||')
	END
}

# Where gRPC is installed.
serve_contents()
{
	[ -e "$(deb weir-fleet-serve)" ] || return
	expect weir-fleet-serve Depends 'libgrpc\+\+1'
	expect weir-fleet-serve Depends 'libmicrohttpd12'
	dpkg-deb --fsys-tarfile "$(deb weir-fleet-serve)" |
		tar -xO ./usr/share/doc/weir-fleet-serve/copyright | grep -q Apache-2.0 ||
		complain "the copyright of weir-fleet-serve does not name the licence of its protos"
	holds weir-fleet-serve <<-END
		./usr/bin/weir-fleet-serve
		$(pages man1 | grep /weir-fleet-serve)
	END
}

fleet_contents()
{
	holds "libweir-fleet$abi" <<-END
		$libdir/libweir-fleet.so.$abi
		$libdir/libweir-fleet.so.$version
	END
	holds libweir-fleet-dev <<-END
		$(cd "$source/fleet" && find include/weir -name '*.h' | sed 's|^|./usr/|')
		$libdir/libweir-fleet.so
		$libdir/cmake/weir/weir-fleet-targets-release.cmake
		$libdir/cmake/weir/weir-fleet-targets.cmake
		$libdir/pkgconfig/weir-fleet.pc
		./usr/share/doc/libweir-fleet-dev/fleet-design.md
		./usr/share/doc/libweir-fleet-dev/fleet.md
		./usr/share/doc/libweir-fleet-dev/operating-a-fleet.md
		$(pages fleet/man3 | sed 's|man/fleet/|man/|')
	END
}

adapter_contents()
{
	for name in $(adapters); do
		holds "libweir-$name$abi" <<-END
			$libdir/libweir-$name.so.$abi
			$libdir/libweir-$name.so.$version
		END
		holds "libweir-$name-dev" <<-END
			$(cd "$source/adapters/$name" && find include/weir -name '*.h*' | sed 's|^|./usr/|')
			$libdir/libweir-$name.a
			$libdir/libweir-$name.so
			$libdir/pkgconfig/weir-$name.pc
			./usr/share/doc/libweir-$name-dev/README.md
		END
	done
}

fields
contents
fleet_contents
serve_contents
adapter_contents
exit "$failed"
