# SPDX-License-Identifier: BSD-2-Clause
# lowdown.sed - what lowdown writes, as mandoc and groff like it, and as manual pages look.

# A heading begins a paragraph by itself, and has its name in its line.
:heading
/^\.S[HS]$/ {
	N
	s/\n/ /
	n
	/^\.LP$/ d
	b heading
}

# Code is bold, and indented in blocks.
s/\\fC/\\fB/g
s/^\.EX$/.in +4n\n.EX/
s/^\.EE$/.EE\n.in/

# Functions have pages. Names are not hyphenated, and a minus is no hyphen.
s/\\fB\(weir_[a-z0-9_]*\)()\\fR/\\fB\1\\fR(3)/g
s/\\fB\([^ \\]*\)\\fR/\\%&/g
s/\\fB-/\\fB\\-/g
