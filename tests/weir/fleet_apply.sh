#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# fleet_apply.sh WEIR SHARER - weir fleet apply, and list --export, over a store in shared memory.
set -u
. "$(dirname "$0")/common.sh"

export WEIR_FLEET="shm:$base"
file=$work/limits

# write LINE...: the file
write()
{
	printf '%s\n' "$@" >"$file"
}

# printed LINE...: these lines are all that was printed
printed()
{
	printf '%s\n' "$@" >"$work/wanted"
	cmp -s "$work/wanted" "$work/out" || complain "not $*: $(cat "$work/out")"
}

# has_only NAME...: the names of all limits
has_only()
{
	names=$("$weir" fleet list 2>"$work/notes" | awk 'NR > 1 { print $1 }' | paste -s -d ' ')
	[ "$names" = "$*" ] || complain "limits: $names, not $*"
}

# refused PATTERN LINE...: a file with these lines is, and changes nothing
refused()
{
	pattern=$1
	shift
	write "$@"
	"$weir" fleet list --export >"$work/before" 2>"$work/notes"
	one_line 1 "^weir: $file:$pattern" fleet apply "$file"
	"$weir" fleet list --export 2>"$work/notes" | cmp -s - "$work/before" || complain "$*: it was changed"
}

makes()
{
	write '# of two services' '[b.service]' 'capacity = 9007199254740992' '' \
		'  [ a:1@x ]  # with all settings' 'capacity=60' 'reserved = 5' "$(printf '\tmembers = 2\r')" \
		'lease = 1.001' 'allotment = proportional # of what is left'
	expect 0 . fleet apply --dry-run "$file"
	printed 'b.service: would be made: capacity 9007199254740992, allotment fair, reserved 0, members 0, lease 15 s' \
		'a:1@x: would be made: capacity 60, allotment proportional, reserved 5, members 2, lease 1.001 s'
	has_only present
	expect 0 . fleet apply "$file"
	printed 'b.service: made: capacity 9007199254740992, allotment fair, reserved 0, members 0, lease 15 s' \
		'a:1@x: made: capacity 60, allotment proportional, reserved 5, members 2, lease 1.001 s'
	has_only a:1@x b.service present
	expect 0 . fleet apply "$file"
	printed 'b.service: unchanged' 'a:1@x: unchanged'
}

# Settings that the file lacks stay, and so do limits that it lacks.
changes()
{
	write '[a:1@x]' 'capacity = 70' 'lease = 2' '[b.service]' '[c]' 'capacity = 1'
	expect 0 . fleet apply -d "$file"
	printed 'a:1@x: would be changed: capacity 60 to 70, lease 1.001 s to 2 s' 'b.service: unchanged' \
		'c: would be made: capacity 1, allotment fair, reserved 0, members 0, lease 15 s'
	expect 0 '^a:1@x +60 ' fleet list
	expect 0 '^a:1@x: changed: capacity 60 to 70, lease 1.001 s to 2 s$' fleet apply "$file"
	expect 0 'allotment proportional, lease 2.00s, 5 reserved for each of 2 members' \
		fleet show a:1@x
	expect 0 '^present +100 ' fleet list
	write '[a:1@x]' 'reserved = 0'
	expect 0 '^a:1@x: changed: reserved 5 to 0, members 2 to 0$' fleet apply "$file"
	write '[a:1@x]' 'allocated = 1'
	expect 0 '^a:1@x: changed: allocated 0 to 1$' fleet apply "$file"
	write '[present]' 'allocated = 1'
	expect 1 'present: .*It has members' fleet apply "$file"
}

refuses()
{
	refused '2: neither|2: This is neither \[LIMIT\] nor SETTING = VALUE' '[a]' 'capacity 5'
	refused '3: colour: There is no such setting' '[c]' 'capacity = 7' 'colour = 3'
	refused '4: capacity = 1x: not a whole number' '[c]' 'capacity = 7' '[d]' 'capacity = 1x'
	refused '2: capacity = 9007199254740993: not a whole number up to 9007199254740992' '[c]' \
		'capacity = 9007199254740993'
	refused '2: capacity = 18446744073709551617: not' '[c]' 'capacity = 18446744073709551617'
	refused '2: capacity = -1: not' '[c]' 'capacity = -1'
	refused '2: capacity = : not' '[c]' 'capacity ='
	refused '2: lease = 4000: not a number of seconds from 0.02' '[c]' 'lease = 4000'
	refused '2: allotment = unfair: not fair, ' '[c]' 'allotment = unfair'
	refused '3: capacity is given twice' '[c]' 'capacity = 7' 'capacity = 7'
	refused '3: c is in line 1 already' '[c]' 'capacity = 7' '[c]'
	refused '1: There is no \[LIMIT\] above this setting' 'capacity = 7' '[c]'
	refused '1: The name of a limit has no \] behind it' '[c'
	refused '1: The name of a limit has no \] behind it' '['
	refused '3: A name has 1 to 200 letters' '[c]' 'capacity = 7' '[a/b]' 'capacity = 7'
	refused '1: A name has 1 to 200 letters' '[]' 'capacity = 7'
	refused '1: A name has at most 200 characters' "[$(printf '%0201d' 0)]" 'capacity = 7'
	refused '1: A name has 1 to 200 letters' "$(printf '[a\033[2J\377]')" 'capacity = 7'
	refused '3: It is not there yet, and needs a capacity' '[c]' 'capacity = 7' '[new]' 'lease = 1'
	refused '3: What is reserved for all members is above the capacity' '[c]' 'capacity = 7' '[a:1@x]' \
		'reserved = 60' 'members = 2'
	refused '3: reserved and members belong together' '[c]' 'capacity = 7' '[a:1@x]' 'members = 2'
	printf '[c]\ncapacity = 7\n\0\n' >"$file"
	one_line 1 "^weir: $file:3: This is not text" fleet apply "$file"
	one_line 1 "^weir: $file-: No such file" fleet apply "$file-"
	one_line 1 "^weir: $work(:0)?: Is a directory" fleet apply "$work"
	one_line 64 'A file is required' fleet apply
	one_line 64 'Only one file' fleet apply a b
	one_line 64 'export cannot be used with' fleet list --export --count=2
	write '[c]' 'capacity = x' '[d]' 'capacity = 1'
	one_line 1 "^weir: $file:2: " fleet apply "$file"
	# What is wrong with several limits is said of each.
	write '[a/b]' 'capacity = 1' '[new]' '[d]' 'capacity = 1'
	expect 1 "^weir: $file:3: It is not there" fleet apply "$file"
	grep -q "^weir: $file:1: A name" "$work/out" || complain "not of each: $(cat "$work/out")"
	has_only a:1@x b.service c present
}

# An export that is applied changes nothing, and makes the same in another store.
round_trip()
{
	expect 0 '' fleet set c capacity=5000 lease=0.029 allotment=none
	"$weir" fleet list --export >"$work/export" 2>"$work/notes" || complain 'export'
	"$weir" fleet apply - <"$work/export" >"$work/out" 2>&1 || complain "$(cat "$work/out")"
	printed 'a:1@x: unchanged' 'b.service: unchanged' 'c: unchanged' 'present: unchanged'
	for limit in a:1@x b.service c; do
		expect 0 '' fleet remove $limit
	done
	has_only present
	"$weir" fleet apply - <"$work/export" >"$work/out" 2>&1 || complain "$(cat "$work/out")"
	[ "$(grep -c ': made: ' "$work/out")" = 3 ] || complain "not made: $(cat "$work/out")"
	"$weir" fleet list --export 2>"$work/notes" | cmp -s - "$work/export" || complain 'another export'
	echo nonsense | "$weir" fleet apply - >"$work/out" 2>&1 && complain 'nonsense'
	grep -q '^weir: -:1: This is neither' "$work/out" || complain "$(cat "$work/out")"
	[ "$("$weir" fleet show --export c 2>/dev/null | head -n 2)" = "$(printf '[c]\ncapacity = 5000')" ] ||
		complain 'export of one'
}

# The time to learn is shown where there is one, exported, and set back to each member's own.
learning()
{
	write '[learns]' 'capacity = 7' 'lease = 2' 'learning = 2.5'
	expect 0 . fleet apply "$file"
	printed 'learns: made: capacity 7, allotment fair, reserved 0, members 0, lease 2 s, learning 2.5'
	expect 0 'lease 2.00s, learning 2.50s, ' fleet show learns
	expect 0 '"learning_period_seconds": 2.5' fleet show --json learns
	expect 0 '^learning = 2.5$' fleet show --export learns
	expect 0 '' fleet set learns capacity=8
	expect 0 '^learning = 2.5$' fleet show --export learns
	expect 1 'learning is shorter than lease' fleet set learns lease=3
	expect 64 'not own, nor a number of seconds' fleet set learns learning=0
	write '[learns]' 'learning = own'
	expect 0 '^learns: changed: learning 2.5 to own$' fleet apply "$file"
	expect 0 '"learning_period_seconds": null' fleet show --json learns
	expect 0 '^learning = own$' fleet show --export learns
	expect 0 '' fleet set learns learning=20
	expect 0 '^learning = 20$' fleet show --export learns
	expect 0 '' fleet remove learns
}

# Templates, of which the store keeps those that the file lacks, unless it is to be pruned.
templates()
{
	write '[template web-*]' 'capacity = 70' '[web-1]' 'capacity = 5' '[ template	* ]' 'capacity = 7' \
		'lease = 2' 'learning = 3'
	expect 0 . fleet apply --dry-run "$file"
	printed 'template web-*: would be made: capacity 70, allotment fair, reserved 0, members 0, lease 15 s' \
		'web-1: would be made: capacity 5, allotment fair, reserved 0, members 0, lease 15 s' \
		'template *: would be made: capacity 7, allotment fair, reserved 0, members 0, lease 2 s, learning 3'
	expect 0 '"templates": \[\]' fleet template list --json
	expect 0 . fleet apply "$file"
	printed 'template web-*: made: capacity 70, allotment fair, reserved 0, members 0, lease 15 s' \
		'web-1: made: capacity 5, allotment fair, reserved 0, members 0, lease 15 s' \
		'template *: made: capacity 7, allotment fair, reserved 0, members 0, lease 2 s, learning 3'
	expect 0 . fleet apply "$file"
	printed 'template web-*: unchanged' 'web-1: unchanged' 'template *: unchanged'
	expect 0 '^web-2 +web-\* +70 ' fleet template match web-2
	write '[template web-*]' 'capacity = 71' '[template]' 'capacity = 1'
	expect 0 . fleet apply "$file"
	printed 'template web-*: changed: capacity 70 to 71' \
		'template: made: capacity 1, allotment fair, reserved 0, members 0, lease 15 s'
	has_only c present template web-1
	expect 0 '^web-1 +5 ' fleet list
	expect 0 '' fleet remove template
	refused '1: It is not there yet, and needs a capacity' '[template new-*]' 'lease = 1'
	refused '1: A pattern has 1 to 200 letters' '[template a/b]' 'capacity = 1'
	refused '1: A pattern has 1 to 200 letters' '[template web *]' 'capacity = 1'
	refused '1: A name has 1 to 200 letters' '[web-*]' 'capacity = 1'
	refused '3: \* is in line 1 already' '[template *]' 'capacity = 1' '[template  *]'
	refused '1: learning is shorter than lease' '[template *]' 'learning = 1'
	"$weir" fleet list --export >"$work/export" 2>"$work/notes" || complain 'export'
	[ "$(head -n 2 "$work/export")" = "$(printf '[template *]\ncapacity = 7')" ] ||
		complain "export: $(cat "$work/export")"
	"$weir" fleet apply --prune - <"$work/export" >"$work/out" 2>&1 || complain "$(cat "$work/out")"
	printed 'template *: unchanged' 'template web-*: unchanged' 'c: unchanged' 'present: unchanged' \
		'web-1: unchanged'
	write '[template web-*]' '[c]'
	expect 0 . fleet apply --prune --dry-run "$file"
	printed 'template web-*: unchanged' 'c: unchanged' 'template *: would be removed' \
		'present: not in the file, but has members' 'web-1: would be removed'
	expect 0 '^web-2 +web-\* +71 ' fleet template match web-2
	expect 0 '^db +\* +7 ' fleet template match db
	expect 0 . fleet apply --prune "$file"
	printed 'template web-*: unchanged' 'c: unchanged' 'template *: removed' \
		'present: not in the file, but has members' 'web-1: removed'
	one_line 1 'No template matches' fleet template match db
	expect 0 '^web-2 +web-\* +71 ' fleet template match web-2
	write '[c]' '[template c]' 'capacity = 2'
	expect 0 . fleet apply "$file"
	printed 'c: unchanged' \
		'template c: made: capacity 2, allotment fair, reserved 0, members 0, lease 15 s'
	write '[c]'
	expect 0 . fleet apply --prune "$file"
	printed 'c: unchanged' 'template c: removed' 'template web-*: removed' \
		'present: not in the file, but has members'
	has_only c present
}

prunes()
{
	write '[c]' 'capacity = 5000'
	expect 0 . fleet apply --prune --dry-run "$file"
	printed 'c: unchanged' 'a:1@x: would be removed' 'b.service: would be removed' \
		'present: not in the file, but has members'
	has_only a:1@x b.service c present
	expect 0 . fleet apply --prune "$file"
	printed 'c: unchanged' 'a:1@x: removed' 'b.service: removed' \
		'present: not in the file, but has members'
	has_only c present
}

hold a 3 "$WEIR_FLEET" present 100 0
wait_for says '^present +100 ' fleet list
makes
changes
refuses
round_trip
learning
prunes
templates
# A limit that has members is changed for all of them.
write '[present]' 'capacity = 40'
expect 0 '^present: changed: capacity 100 to 40$' fleet apply "$file"
expect 0 '^present: capacity 40, ' fleet show present
exit $failed
