#!/bin/sh
# repeats.sh WEIR_SIM SOURCE_DIR - the same seed, the same bytes: a second time, in one thread and in
# two, and from every compiler, as the scores are those of scores.tsv. Where a change of a limit
# or of the simulator is meant to change them:
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
cmp "$work/once" "$work/again" || complain "the second time is another"
cmp "$work/once" "$work/two" || complain "two threads are not one"
diff "$here/scores.tsv" "$work/once" || complain "the scores are not those that were recorded"

# With oracles that were kept, too, and for what depends on chance.
"$tool" score -l "$limits" -s "$here/small.cfg" -r 1..2 --tsv - >"$work/kept"
"$tool" score -l "$limits" -s "$here/small.cfg" -r 1..2 --tsv - >"$work/kept-again"
cmp "$work/once" "$work/kept" && cmp "$work/once" "$work/kept-again" ||
	complain "an oracle that was kept is another"
"$tool" run -l "$limits" -s "$here/small.cfg" -r 1..2 -j 1 >"$work/run"
"$tool" run -l "$limits" -s "$here/small.cfg" -r 1..2 -j 2 | cmp "$work/run" - ||
	complain "runs in two threads are not those in one"
"$tool" run -l "$limits" -s "$here/small.cfg" -r 3..4 | cmp -s "$work/run" - &&
	complain "another seed makes no difference"
exit "$failed"
