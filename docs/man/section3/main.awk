# SPDX-License-Identifier: BSD-2-Clause
# The manual pages of section 3, from the public headers alone.
#
#	awk -v version=0.1.0 -v date=2026-11-21 -f main.awk -f read.awk ... \
#		out=DIR HEADER... [library=weir-fleet out=DIR HEADER...]
#
# Pages go to the folder, and belong to the library, that are named before their header.
#
# What it makes of a header:
#
#   the opening comment    the page of the header, weir_limiter.h(3), with its constants
#   a comment and the declarations right below it, up to a blank line
#                          one page, named after the first function or else the first
#                          structure; the other names are links to it
#   declarations below a blank line, without a comment
#                          part of the page before
#   a comment that begins "The same ..."
#                          part of the page of the function whose name the function's
#                          own extends (_at, say), or else of the page before
#   a first sentence       NAME, shortened to a clause
#   sentences that begin with 0, a negative errno, "Returns", "The number" or "How many"
#                          RETURN VALUE
#   "Any thread.", or else the opening comment's paragraph on threads
#                          THREAD SAFETY
#   a field, with the comment in front of it, or behind
#                          an entry in FIELDS
#   a value with such a comment
#                          an entry in VALUES
#   lines of a comment that are indented by a tab
#                          code
#   lines of a comment that begin with "- ", after a blank line or a colon
#                          a list
#
# So there is no list of functions to maintain: a new one has its page once it is declared. A C++
# header (.hpp) has one page: the opening comment, functions, and each class with its public
# members. A declaration without a comment goes with the one before it. Deleted functions are left
# out.

BEGIN {
	width = 72 # of text, in columns
	library = "weir"
	header_count = unit_count = decl_count = page_count = 0
}

FNR == 1 {
	begin_header(FILENAME)
}

# The licence, above the comment that begins a header, is no part of the page.
/^\/\* SPDX-/ {
	next
}

{
	read_line($0)
}

END {
	make_pages()
	for (p = 1; p <= page_count; p++)
		write_page(p)
	for (h = 1; h <= header_count; h++)
		write_header(h)
}
