#!/bin/sh
# lintian.sh WORK_DIR - Debian's own judge of packages has nothing to say.
set -u

work=$1
. "$(dirname "$0")/common.sh"

lintian --fail-on error,warning "$debs"/*.deb
