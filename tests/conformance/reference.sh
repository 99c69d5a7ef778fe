#!/bin/sh
# Replay the whole reference set, which is not part of this repository. Status 77 means
# to CTest that the test was skipped.
tool=$1
traces=$2

if [ ! -d "$traces" ]; then
	echo "skipped: no reference traces at $traces"
	exit 77
fi
exec "$tool" "$traces"
