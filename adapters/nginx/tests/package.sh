#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The Debian package of the module: its files, lintian, and whether nginx loads it.
# Usage: package.sh NGINX SOURCE_DIR WORK_DIR CMAKE CPACK
set -u
nginx=$1 source=$2 work=$3 cmake=$4 cpack=$5

for tool in dpkg-shlibdeps file fakeroot lintian; do
	command -v "$tool" >/dev/null || { echo "SKIPPED: $tool is missing"; exit 77; }
done
[ -x "$nginx" ] || { echo "SKIPPED: there is no nginx"; exit 77; }

fail()
{
	echo "FAILED: $*" >&2
	exit 1
}

rm -rf "$work"
mkdir -p "$work/root"
"$cmake" -S "$source" -B "$work/build" -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_BUILD_TYPE=Release \
	-DWEIR_TESTS=OFF -DWEIR_EXAMPLES=OFF -DWEIR_BENCH=OFF -DWEIR_MAN=OFF -DWEIR_TOOL=OFF \
	-DWEIR_FLEET=OFF -DWEIR_ADAPTERS=nginx \
	-DCMAKE_SKIP_INSTALL_ALL_DEPENDENCY=ON || exit 1
"$cmake" --build "$work/build" --parallel 2 --target weir nginx-module || exit 1
(cd "$work/build" && "$cpack" -D CPACK_COMPONENTS_ALL=weir_nginx -B "$work/debs") || exit 1
deb=$(echo "$work"/debs/libnginx-mod-http-weir_*.deb)
[ -e "$deb" ] || fail "there is no package"

dpkg-deb -f "$deb" Depends | grep -qE '^nginx-abi-[^,]*, .*libc6 .*libck0' ||
	fail "it depends on: $(dpkg-deb -f "$deb" Depends)"
dpkg-deb --fsys-tarfile "$deb" | tar -t | grep -v '/$' | sort >"$work/found"
diff - "$work/found" <<END || fail "it has other files"
./usr/lib/nginx/modules/ngx_http_weir_module.so
./usr/share/doc/libnginx-mod-http-weir/changelog.gz
./usr/share/doc/libnginx-mod-http-weir/copyright
./usr/share/doc/libnginx-mod-http-weir/examples/sidecar.conf
./usr/share/nginx/modules-available/mod-http-weir.conf
END
lintian --fail-on error,warning "$deb" || fail "lintian reports errors"

dpkg-deb -x "$deb" "$work/root"
sed "s|modules/|$work/root/usr/lib/nginx/modules/|" \
	"$work/root/usr/share/nginx/modules-available/mod-http-weir.conf" >"$work/nginx.conf"
echo "pid $work/pid; events {} http { weir_zone app; weir zone=app; }" >>"$work/nginx.conf"
"$nginx" -t -e "$work/error.log" -c "$work/nginx.conf" || fail "nginx does not load it"
