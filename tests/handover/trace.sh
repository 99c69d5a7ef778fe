#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# trace.sh OWNERS CHECK PAGE MINUTES SEEDS [FIRST] - members suffer faults in simulated time, and each
# change of what they own is a step of the page, and each step of the page happens.
set -uo pipefail

"$1" "$4" "$5" "${6-1}" trace | "$2" "$3" all
