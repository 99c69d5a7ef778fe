#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# probes.sh LIBRARY - each probe is visible to a tracer, with its name and all arguments.
set -u

library=$1

# has NAME ARGUMENTS: the probe exists, at each place with that number of arguments.
has()
{
	readelf -n "$library" | awk -v name="$1" -v arguments="$2" '
		$1 == "Provider:" { ours = $2 == "weir" }
		$1 == "Name:" { this = $2 }
		$1 == "Arguments:" && ours && this == name { found++; odd += NF - 1 != arguments }
		END { exit !(found > 0 && odd == 0) }' && return
	echo "weir:$1 is missing, or does not have $2 arguments everywhere"
	failed=1
}

failed=0
has window 6
has reject 3
exit "$failed"
