# SPDX-License-Identifier: BSD-2-Clause
# A header with its comments as doxygen wants them: the first is of the file; one in front of several
# declarations is of each; one behind a declaration says so; errors are a list.

/^\/\* SPDX-/ { $0 = "" }
/^struct [a-z_]+; *\/\*/ { sub(/\/\*.*/, "") } # where it is declared: of no use here

!inside && /^(struct|enum|class|template)/ && !/;/ { body = 1 }
/^\}/ { body = 0 }

!inside && (/^$/ || /^#if/) && grouped && !body {
	print "/** @} */"
	grouped = 0
}

!inside && /\/\*/ {
	inside = 1
	if (!opened++) {
		sub(/\/\*/, "/** @file")
	} else if (/^\/\*/ && !cpp) {
		print "/** @{ */"
		grouped = 1
	}
	sub(/[^ \t].*\/\*/, "&*<")
	sub(/\/\* |\/\*$/, "/** ")
}

inside && / \* weir[a-z\/_]*\.hp?p? - / { sub(/[^ ]+ - /, "") }
inside && /^ \* -E[A-Z0-9]+: / { sub(/-E/, "- -E") }
/\*\// { inside = 0 }

{ print }
