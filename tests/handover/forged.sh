#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# forged.sh CHECK PAGE - a trace that keeps to the page is believed, and each trace with one step that
# the page does not allow is refused.
set -uo pipefail

check=$1
page=$2
failed=0

trace='1.0 worker a1 10 0
1.0 worker b2 11 1
2.0 row 3 a1 12 0
2.1 part 3 0 a1 owned 12 lease unread held
3.0 request 3 b2 13 1
3.5 part 3 0 a1 asked 12 lease wanted held
3.6 part 3 0 a1 leaving 12 lease wanted
3.7 part 3 0 a1 none 12 lease wanted given-up
3.8 row 3 - 12 0
4.0 row 3 b2 14 1
4.0 request 3 - 13 1
4.1 part 3 1 b2 owned 14 lease unread
4.5 checkpoint 3 7 15 14 1
5.0 checkpoint 3 8 16 14 1
5.5 checkpoint 3 0 17 14 operator
5.5 rewound 3 14 17 operator
5.6 part 3 1 b2 none 14 lease noted
5.7 part 3 1 b2 none 14 lease noted given-up
5.8 row 3 - 14 1
5.8 rewound 3 14 0 1
6.0 row 3 b2 18 1
6.1 part 3 1 b2 owned 18 lease unread
6.5 checkpoint 3 1 19 18 1
9.0 part 3 1 b2 over 18 lease-over
9.1 part 3 1 b2 none 18 lease-over
9.5 row 3 - 18 expiry
9.5 worker b2 0 expiry'

if ! "$check" "$page" <<<"$trace" >/dev/null; then
	echo 'a trace that keeps to the page was refused'
	failed=1
fi

# forge WHAT SED_SCRIPT
forge()
{
	local forged

	forged=$(sed "$2" <<<"$trace")
	if [ "$forged" = "$trace" ]; then
		echo "nothing was forged: $1"
		failed=1
	elif "$check" "$page" <<<"$forged" >/dev/null 2>&1; then
		echo "this was believed: $1"
		failed=1
	fi
}

forge 'a session ends while its member owns' '/^9[.][01]/d'
forge 'an owner erases what it has not given up' '/^3[.]7/d'
forge 'a member erases the row of another' 's/^3[.]8 row 3 - 12 0/3.8 row 3 - 12 1/'
forge 'a row is made where there is one' '/^3[.]8/d'
forge 'a claim while the last owner still owns' '/^3[.]7/d; s/^3[.]8 row 3 - 12 0/3.8 row 3 - 12 lost/'
forge 'a fence that is lower' 's/^4[.]0 row 3 b2 14/4.0 row 3 b2 9/'
forge 'a claim by a process that has not joined' '/^1[.]0 worker b2/d'
forge 'a gain without a row' 's/^4[.]1 part 3 1 b2 owned 14/4.1 part 3 1 b2 owned 13/'
forge 'a gain by the row of another' 's/^2[.]1 part 3 0 a1/2.1 part 3 1 b2/'
forge 'a gain after the lease' 's/^4[.]1 \(.*\) lease/4.1 \1 lease-over/'
forge 'a gain of what was given up' 's/^3[.]8.*/3.75 part 3 0 a1 owned 12 lease/'
forge 'a hand-over without a request' 's/asked 12 lease wanted/asked 12 lease/'
forge 'a hand-over before the time to hold' 's/asked 12 lease wanted held/asked 12 lease wanted/'
forge 'an ownership that ends for no reason' 's/^9[.]0 \(.*\) lease-over/9.0 \1 lease/'
forge 'a request that another member withdraws' 's/^4[.]0 request 3 - 13 1/4.2 request 3 - 13 0/'
forge 'a checkpoint that goes back' 's/^5[.]0 checkpoint 3 8/5.0 checkpoint 3 6/'
forge 'a checkpoint by an earlier fence' 's/ 16 14 1$/ 16 12 0/'
forge 'a checkpoint by a fence that was set back' 's/^5[.]6.*/5.6 checkpoint 3 9 18 14 1/'
forge 'a member that goes back' 's/^5[.]5 checkpoint \(.*\) operator/5.5 checkpoint \1 1/'
forge 'a checkpoint that is set back past the owner' 's/^5[.]5 checkpoint 3 0 17 14/5.5 checkpoint 3 0 17 0/'
forge 'a note without a checkpoint' '/^5[.]5 checkpoint/d'
forge 'a note of another fence' 's/^5[.]5 rewound 3 14/5.5 rewound 3 12/'
forge 'a note that goes before the row' 's/^5[.]8 rewound/5.9 rewound/'
forge 'a partition lost without a note' 's/^5[.]6 \(.*\) noted/5.6 \1/'
exit "$failed"
