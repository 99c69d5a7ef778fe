#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# repeats.sh WEIR_SIM SOURCE_DIR - the same seed gives the same bytes: when repeated, with one thread and
# with two, and with every compiler, as the scores must equal scores.tsv. After a change of a limit or
# of the simulator that is meant to change them:
#
#	weir-sim score --fresh -l LIMITS -s tests/weir-sim/small.cfg -r 1..2 --tsv - >tests/weir-sim/scores.tsv
set -u
. "$(dirname "$0")/common.sh"

limits=vegas,aimd,gradient,gradient2:min=1,fixed:limit=12

# scores NAME ARGUMENT...
scores()
{
	name=$1
	shift
	"$tool" score --fresh -l "$limits" -s "$here/small.cfg" -r 1..2 --tsv - "$@" >"$work/$name" ||
		complain "no scores"
}

scores once --jobs 1
scores again --jobs 1
scores two --jobs 2
cmp "$work/once" "$work/again" || complain "the second run differs"
cmp "$work/once" "$work/two" || complain "two threads differ from one"
diff "$here/scores.tsv" "$work/once" || complain "the scores differ from scores.tsv"

# Also with cached oracles, and for limits and scenarios that use random numbers.
"$tool" score -l "$limits" -s "$here/small.cfg" -r 1..2 --tsv - >"$work/kept"
"$tool" score -l "$limits" -s "$here/small.cfg" -r 1..2 --tsv - >"$work/kept-again"
cmp "$work/once" "$work/kept" && cmp "$work/once" "$work/kept-again" ||
	complain "a cached oracle differs"
"$tool" run -l "$limits" -s "$here/small.cfg" -r 1..2 -j 1 >"$work/run"
"$tool" run -l "$limits" -s "$here/small.cfg" -r 1..2 -j 2 | cmp "$work/run" - ||
	complain "runs with two threads differ from those with one"
"$tool" run -l "$limits" -s "$here/small.cfg" -r 3..4 | cmp -s "$work/run" - &&
	complain "another seed makes no difference"
exit "$failed"
