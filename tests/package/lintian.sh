#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# lintian.sh WORK_DIR - lintian finds no error and no warning.
set -u

work=$1
. "$(dirname "$0")/common.sh"

lintian --fail-on error,warning "$debs"/*.deb
