#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# stage.sh DIR - makes installed files below DIR such as they are in Debian packages.
set -eu

cd "$1"

find . \( -path '*/share/man/*' -o -path '*/share/doc/*/changelog' \) -type f -exec gzip -9n {} +
find . -path '*/share/man/*' -type l | while read -r link; do
	ln -s "$(readlink "$link").gz" "$link.gz"
	rm "$link"
done
find . \( -path '*/bin/*' -o -name '*.so.*' -o -path '*/nginx/modules/*' \) -type f \
	-exec strip --remove-section=.comment --remove-section=.note {} +
find . -name '*.a' -exec strip --strip-debug --enable-deterministic-archives \
	--remove-section=.comment --remove-section=.note {} +
