#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# docs.sh WEIR_SIM SOURCE_DIR WORK_DIR - docs/scenarios.md lists exactly the settings that are read and
# the built-in scenarios, and its example is a valid scenario.
set -eu

sim=$1
page=$2/docs/scenarios.md
reader=$2/bench/sim/scenario_settings.c
scenarios=$2/bench/scenarios
work=$3
failed=0

mkdir -p "$work"

# A line for each setting: its heading and its name.
awk '
	BEGIN {
		heading["root"] = "The scenario"
		heading["arrivals"] = "arrivals"
		heading["client"] = "client"
		heading["station"] = "server"
		heading["class"] = "classes"
		heading["groups"] = "limiters"
		heading["phase"] = "phases"
	}
	/^static int read_/ { reads = $3; sub(/^read_/, "", reads); sub(/\(.*/, "", reads) }
	/^int scenario_from_settings/ { reads = "root" }
	/^\t\t\{"/ && reads in heading { split($0, part, "\""); print heading[reads] ": " part[2] }
' "$reader" | sort >"$work/read"
awk '
	/^## / { inside = $0 == "## Settings" }
	/^### / { heading = substr($0, 5) }
	inside && /^\| `/ { split($0, part, "`"); print heading ": " part[2] }
' "$page" | sort >"$work/settings"

# A line for each scenario: its name and its description.
sed -n -e 's/^name = "\(.*\)";$/\1/p' -e 's/^about = "\(.*\)";$/\1/p' "$scenarios"/*.cfg |
	paste -d '|' - - | sed 's/|/: /' | sort >"$work/built-in"
sed -n '/^## Scenarios that come/,$s/^| `\([^`]*\)` | \(.*\) |$/\1: \2/p' "$page" |
	sort >"$work/listed"

# The first fenced block.
awk '/^```/ { fence++; next } fence == 1' "$page" >"$work/example.cfg"
"$sim" run --limit vegas --scenario "$work/example.cfg" >"$work/example.out" || failed=1

echo "$(wc -l <"$work/read") settings, $(wc -l <"$work/built-in") scenarios"
[ "$(wc -l <"$work/read")" -gt 50 ] || exit 1
[ "$(wc -l <"$work/built-in")" -gt 50 ] || exit 1
diff -u "$work/read" "$work/settings" || failed=1
diff -u "$work/built-in" "$work/listed" || failed=1
exit "$failed"
