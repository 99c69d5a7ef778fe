# SPDX-License-Identifier: BSD-2-Clause
# What the tests of packages share: the folders, and what they need.
# shellcheck shell=sh disable=SC2034,SC2154

debs=$work/debs
root=$work/root
arch=$(dpkg --print-architecture 2>/dev/null)

for tool in dpkg-shlibdeps file fakeroot lowdown help2man lintian man; do
	command -v "$tool" >/dev/null || { echo "SKIPPED: $tool is missing"; exit 77; }
done
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)

failed=0

# complain TEXT...
complain()
{
	echo "$*"
	failed=1
}

# dpkg_below ARGUMENT...: dpkg for the root of our own. What the machine's dpkg leaves out, as
# manual pages in containers, it does not.
dpkg_below()
{
	as_root=
	[ "$(id -u)" = 0 ] || as_root=fakeroot
	PATH=$PATH:/usr/sbin:/sbin $as_root dpkg --root="$root" --path-include='/*' "$@"
}
