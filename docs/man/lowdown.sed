# lowdown.sed - what lowdown writes, as mandoc and groff like it, and as section 3 looks.

# A heading begins a paragraph by itself.
:heading
/^\.S[HS]$/ {
	n
	n
	/^\.LP$/ d
	b heading
}

# Code is bold, and indented in blocks.
s/\\fC/\\fB/g
s/^\.EX$/.in +4n\n.EX/
s/^\.EE$/.EE\n.in/

# Names are not hyphenated.
s/\\fB\(weir[a-z0-9_.-]*\)\\fR(/\\%&/g
