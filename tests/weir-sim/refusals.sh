#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# refusals.sh WEIR_SIM SOURCE_DIR - invalid arguments are refused in one sentence.
set -u
. "$(dirname "$0")/common.sh"
small=$here/small.cfg

# Commands and options.
refused 'there is no command nonsense' nonsense
refused 'unrecognized option' run --nonsense
refused "requires an argument" run --limit
refused 'A limit' run
refused 'A limit and a scenario' run -l vegas
refused 'Too many arguments' run -l vegas -s "$small" more
refused 'param is required' sweep -l vegas -s "$small"

# Limits.
refused 'no limit "nonsense"' run -l nonsense -s "$small"
refused 'no limit ""' run -l '' -s "$small"
refused 'no limit ""' run -l vegas,, -s "$small"
refused 'no parameter "gamma"' run -l vegas:gamma=1 -s "$small"
refused 'is not name=value' run -l vegas:alpha -s "$small"
refused 'alpha cannot be "log10:"' run -l vegas:alpha=log10: -s "$small"
refused 'initial is 0, outside' run -l vegas:initial=0 -s "$small"
refused 'smoothing is 2, outside' run -l vegas:smoothing=2 -s "$small"
refused 'smoothing cannot be "nan"' run -l vegas:smoothing=nan -s "$small"
refused 'beta is below alpha|alpha is above beta' run -l vegas:alpha=const:9,beta=const:2 -s "$small"
refused 'timeout cannot be "5"' run -l aimd:timeout=5 -s "$small"
refused 'window_min=0: is not a valid value|window_min=0 is not a valid value' run -l vegas:window_min=0 -s "$small"
refused 'window_min is above window_max' run -l vegas:window_min=2s,window_max=1s -s "$small"
refused 'windowing=never is not a valid value' run -l vegas:windowing=never -s "$small"
refused 'window_samples=-1 is not a valid value' run -l vegas:window_samples=-1 -s "$small"
refused 'rtt=p100 is not a valid value' run -l vegas:rtt=p100 -s "$small"
refused 'rtt=p9x is not a valid value' run -l vegas:rtt=p9x -s "$small"
refused 'longer than' run -l "vegas:$(printf '%01200d' 0)" -s "$small"

# Seeds, threads, numbers.
for seed in x -1 1..x 2..1 1.. 1..2..3 99999999999999999999 1..100000; do
	refused 'not a (seed|range of)' run -l vegas -s "$small" --seed="$seed"
done
for jobs in 0 x -1 257 2x -18446744073709551615; do
	refused 'is not a number from 1 to 256' run -l vegas -s "$small" --jobs="$jobs"
done
for worst in x -1 4294967297; do
	refused 'is not a number from 0' score -l vegas -s "$small" --worst="$worst"
done
for times in '' x 0 -1 nan inf 1001 '1,' ',1' '1,x' 1.1x; do
	refused 'is not a list of' score -l vegas -s "$small" --times="$times"
done
refused 'is not a list of' score -l vegas -s "$small" --times="$(seq -s, 1 33)"
for every in 0 10 1ns x 1e40s nan; do
	refused 'is not a duration' run -l vegas -s "$small" --series - --every "$every"
done

# Sweeps.
refused 'alpha: write' sweep -l vegas -s "$small" --param alpha
refused 'alpha=: write' sweep -l vegas -s "$small" --param alpha=
refused 'alpha=6..1: write' sweep -l vegas -s "$small" --param alpha=6..1
refused 'alpha=..: write' sweep -l vegas -s "$small" --param alpha=..
refused 'timeout=1..2s: write|timeout' sweep -l aimd -s "$small" --param timeout=1ms..2x
refused 'no parameter "gamma"' sweep -l vegas -s "$small" --param gamma=1,2
for steps in 1 101 x -18446744073709551606; do
	refused 'is not a number from 2' sweep -l vegas -s "$small" --param alpha=log10:1..6 --steps="$steps"
done

# Scenarios. Errors in a file are reported with their line.
refused 'no scenario "nonsense"' run -l vegas -s nonsense
refused 'no family:nonsense' run -l vegas -s family:nonsense
refused 'A scenario is required' run -l vegas -s ,
refused 'series is required' run -l vegas -s "$small" --oracle
refused 'series is required' run -l vegas -s "$small" --every 1s
refused '/nowhere.cfg: No such file' run -l vegas -s ./nowhere.cfg
mkdir -p "$work/folder/inner.cfg"
refused 'folder/inner.cfg: Is a directory' run -l vegas -s "$work/folder"
refused 'The folder has no .cfg files' run -l vegas -s "$work/folder/inner.cfg"

# wrong PATTERN SED: the scenario edited by SED is refused.
wrong()
{
	sed "$2" "$small" >"$work/wrong.cfg"
	cmp -s "$small" "$work/wrong.cfg" && complain "sed '$2' changes nothing"
	refused "wrong.cfg:[0-9]+: $1" run -l vegas -s "$work/wrong.cfg"
}

wrong 'syntax error' 's/^server = (/server = /'
wrong 'There is no setting .nme. here' 's/^name/nme/'
wrong 'The scenario has no name' '/^name/d'
wrong 'There is no server' '/^server/d'
wrong 'There are no phases' '/^phases/,/^);/d'
wrong 'workers is -1, not from' 's/workers = 8/workers = -1/'
wrong 'workers is not a whole number' 's/workers = 8/workers = 1.5/'
wrong 'workers is not a number' 's/workers = 8/workers = "8"/'
wrong 'work: it is not a law' 's/lognormal 10ms/gaussian 10ms/'
wrong 'work: it has too many numbers' 's/lognormal 10ms 0.5/lognormal 10ms/'
wrong 'work: sigma is not' 's/lognormal 10ms 0.5/lognormal 10ms 50/'
wrong 'length is not a duration' 's/"5s"/"5"/'
wrong 'length is too short' 's/"5s"/"0s"/'
wrong 'There is no station .wrkers.' 's/station = "workers"/station = "wrkers"/'
wrong 'A phase needs a rate or a load' 's/load = 0.5; warm/warm/'
wrong 'process must be one of:' 's/"batches"/"bunches"/'
wrong 'A replay needs a file of times' 's/"batches"/"replay"/'
wrong 'retries is 1000, not from' 's/retries = 1/retries = 1000/'
exit "$failed"
