# SPDX-License-Identifier: BSD-2-Clause
# synopsis.awk - declarations as a SYNOPSIS shows them.

# Collects the names of all parameters of a page's functions. Returns whether it has functions.
function find_parameters(p,    i, j, n, d, name, found)
{
	split("", parameter)
	found = 0
	for (i = 1; i <= page_decls[p]; i++) {
		d = page_decl[p, i]
		if (decl_kind[d] != "function")
			continue
		found = 1
		n = split_parameters(decl_text[d])
		for (j = 1; j <= n; j++)
			if ((name = parameter_name(part[j])) != "")
				parameter[name] = 1
	}
	return found
}

# Splits a prototype at its outer commas: head up to the bracket, then part[].
function split_parameters(text,    n, i, c, level, now)
{
	n = index(text, "(")
	head = substr(text, 1, n)
	now = ""
	level = 1
	split("", part)
	part_count = 0
	for (i = n + 1; i <= length(text) && level > 0; i++) {
		c = substr(text, i, 1)
		if (c == "(")
			level++
		else if (c == ")")
			level--
		if (level == 0 || (level == 1 && c == ",")) {
			part[++part_count] = joined(now)
			now = ""
		} else {
			now = now c
		}
	}
	return part_count
}

function parameter_name(text)
{
	if (match(text, /\(\*[a-z0-9_]+\)/))
		return substr(text, RSTART + 2, RLENGTH - 3)
	if (text !~ /[ *]/)
		return ""
	sub(/(\[.*)?$/, "", text)
	sub(/^.*[ *]/, "", text)
	return text
}

# Declaration d, below the one before it: no blank line between prototypes.
function synopsis(d, before,    kind)
{
	kind = decl_kind[d]
	if (kind !~ /^(function|macro)$/ || before == 0 || kind != decl_kind[before])
		put(".PP")
	if (kind == "function")
		prototype(decl_text[d])
	else if (kind == "struct" || kind == "enum" || (kind == "typedef" && decl_text[d] ~ /\{/))
		definition(decl_text[d])
	else if (kind == "macro" && length(decl_text[d]) > width)
		macro(decl_text[d])
	else if (kind == "typedef")
		put(bold(first_code(decl_text[d])))
	else
		put(bold(decl_text[d]))
}

function first_code(text)
{
	sub(/\/\*.*$/, "", text)
	return joined(text)
}

function macro(text,    n)
{
	n = index(text, ")")
	put(bold(substr(text, 1, n) " \\"))
	put(bold("    " substr(text, n + 2)))
}

function prototype(text,    n, i, line, column, indent, longest, end, fold)
{
	n = split_parameters(text)
	longest = 0
	for (i = 1; i <= n; i++)
		if (length(part[i]) > longest)
			longest = length(part[i])
	line = bold(head)
	column = indent = length(head)
	if (indent + longest + 2 > width) {
		put(line)
		indent = 8
		column = indent
		line = blanks(indent)
	}
	for (i = 1; i <= n; i++) {
		end = i < n ? "," : ");"
		fold = last_comma(part[i] end, width - indent)
		if (fold > 0 && indent + length(part[i] end) > width) {
			if (i > 1) {
				put(line)
				line = blanks(indent)
			}
			put(line argument(substr(part[i], 1, fold)))
			line = blanks(indent + 8) bold(substr(part[i], fold + 2) end)
			column = width
			continue
		}
		if (i > 1 && column + 1 + length(part[i] end) > width) {
			put(line)
			line = blanks(indent)
			column = indent
		} else if (i > 1) {
			line = line " "
			column++
		}
		line = line argument(part[i]) bold(end)
		column += length(part[i] end)
	}
	put(line)
}

function blanks(n)
{
	return sprintf("%" n "s", "")
}

function argument(text,    name, n)
{
	name = parameter_name(text)
	if (name == "")
		return bold(text)
	for (n = length(text) - length(name) + 1; substr(text, n, length(name)) != name; n--)
		;
	return bold(substr(text, 1, n - 1)) italic(name) bold(substr(text, n + length(name)))
}

# A structure or an enumeration without its comments, with blanks for tabs.
function definition(raw,    lines, n, i, m, empty)
{
	gsub(/\t/, "    ", raw)
	while ((n = index(raw, "/*")) > 0) {
		m = index(substr(raw, n), "*/")
		raw = substr(raw, 1, n - 1) "\001" substr(raw, n + m + 1)
	}
	n = split(raw, lines, "\n")
	empty = 1
	for (i = 1; i <= n; i++) {
		m = lines[i] ~ /\001/
		gsub(/[ \001]+$/, "", lines[i])
		gsub(/\001/, "", lines[i])
		if (lines[i] != "")
			folded(lines[i])
		else if (!m && !empty && i < n)
			put("")
		empty = lines[i] == ""
	}
}

# The position of the last comma within that many columns of a text; 0 if there is none far enough
# to the right.
function last_comma(text, columns)
{
	while (columns > 30 && substr(text, columns, 2) != ", ")
		columns--
	return columns > 30 ? columns : 0
}

# A line, broken after a comma if it is too long.
function folded(line,    n)
{
	n = length(line) > width ? last_comma(line, width) : 0
	if (n == 0) {
		put(bold(line))
		return
	}
	put(bold(substr(line, 1, n)))
	folded(blanks(12) substr(line, n + 2))
}
