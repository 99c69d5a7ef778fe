# SPDX-License-Identifier: BSD-2-Clause
# pages.awk - from units to pages: which names go together, and what is in a type.

function make_pages(    u, d)
{
	for (u = 1; u <= unit_count; u++)
		if (!is_a_form(u))
			make_page(u)
	for (u = 1; u <= unit_count; u++)
		if (is_a_form(u))
			share_pages(u)
	for (d = 1; d <= decl_count; d++)
		if (decl_kind[d] == "constant" || decl_kind[d] == "values")
			note_constant(d)
}

# Whether a unit's comment begins with "The same ...", so it belongs to the unit above it.
function is_a_form(u)
{
	return unit_text[u] ~ /^The same[ ,.]/ && unit_header[u - 1] == unit_header[u] &&
		first_of(u, "^(function|macro)$") > 0 &&
		first_of(u, "^(variable|struct|typedef|enum)$") == 0
}

# The page of a unit that has more than constants. A structure and a function of the same name
# share a page, as there can be only one.
function make_page(u,    d, first)
{
	first = first_of(u, "^(function|macro|variable)$")
	if (first == 0)
		first = first_of(u, "^(struct|typedef)$")
	if (first == 0)
		first = first_of(u, "^enum$")
	if (first == 0)
		return
	if (decl_name[first] in page_of) {
		unit_page[u] = page_of[decl_name[first]]
		page_more[unit_page[u]] = page_more[unit_page[u]] "\n\n" unit_text[u]
	} else {
		new_page(u, decl_name[first])
	}
	for (d = 1; d <= decl_count; d++)
		if (decl_unit[d] == u && decl_kind[d] != "values")
			add_to_page(unit_page[u], d)
}

function first_of(u, kinds,    d)
{
	for (d = 1; d <= decl_count; d++)
		if (decl_unit[d] == u && !(d in decl_late) && decl_kind[d] ~ kinds)
			return d
	return 0
}

function new_page(u, name)
{
	page_count++
	unit_page[u] = page_count
	page_name[page_count] = name
	page_unit[page_count] = u
	page_header[page_count] = unit_header[u]
	page_decls[page_count] = 0
	page_more[page_count] = ""
}

function add_to_page(p, d)
{
	page_decl[p, ++page_decls[p]] = d
	if (decl_kind[d] != "constant")
		page_of[decl_name[d]] = p
}

# For "The same ...": each function goes to the page of the function that it is a form of.
function share_pages(u,    d, p, q, before, text, taken)
{
	for (q = u - 1; q > 1 && !(q in unit_page); q--)
		;
	before = unit_page[q]
	text = unit_text[u]
	sub(/^The same/, "the same", text)
	for (d = 1; d <= decl_count; d++) {
		if (decl_unit[d] != u)
			continue
		p = page_extended_by(decl_name[d])
		if (p == 0)
			p = before
		add_to_page(p, d)
		taken[p] = taken[p] (taken[p] == "" ? "" : " and ") decl_name[d] "()"
	}
	for (p in taken)
		page_more[p] = page_more[p] "\n\n" taken[p] \
			(taken[p] ~ / and / ? " do " : " does ") text
}

function page_extended_by(name)
{
	while (sub(/_[a-z0-9]*$/, "", name))
		if (name in page_of)
			return page_of[name]
	return 0
}

function note_constant(d,    i, h, text)
{
	h = unit_header[decl_unit[d]]
	text = decl_note[d] != "" ? decl_note[d] : unit_text[decl_unit[d]]
	if (decl_kind[d] == "constant") {
		if (!(decl_unit[d] in unit_page))
			add_constant(h, decl_text[d], decl_name[d], text)
		return
	}
	read_members(decl_text[d], 0)
	for (i = 1; i <= member_count; i++)
		add_constant(h, member_code[i], member_name[i], member_text[i])
}

function add_constant(h, code, name, text,    n)
{
	n = ++constant_count[h]
	constant_code[h, n] = code
	constant_name[h, n] = name
	constant_text[h, n] = text
}

# The members of a structure or an enumeration that have a comment, in front or behind, or all
# of them. A comment in front also applies to the members right below it that have none.
function read_members(raw, all,    lines, n, i, line, text, now)
{
	member_count = 0
	front = now = text = ""
	n = split(raw, lines, "\n")
	for (i = 2; i <= n; i++) {
		line = lines[i]
		if (line ~ /^\}/)
			break
		if (line ~ /^[ \t]*$/) {
			front = ""
			continue
		}
		while (line ~ /\/\*/ && line !~ /\*\// && i < n)
			line = line "\n" lines[++i]
		text = ""
		if (match(line, /\/\*/)) {
			text = plain(substr(line, RSTART))
			line = substr(line, 1, RSTART - 1)
		}
		now = (now == "" ? "" : now " ") joined(line)
		if (now == "") {
			front = text
			front_member = 0
			continue
		}
		if (now !~ /[;,]$/ && lines[i + 1] !~ /^\}/)
			continue
		add_member(now, text, all)
		now = ""
	}
}

function add_member(line, text, all)
{
	if (front != "" && text == "" && front_member > 0) {
		member_name[front_member] = member_name[front_member] ", " names_of(line)
		return
	}
	if (front != "" && text == "") {
		text = front
		front_member = member_count + 1
	} else {
		if (front != "" && front_member == 0)
			text = front "\n\n" text
		front = ""
	}
	if (text == "")
		text = type_of(line)
	if (text == "" && !all)
		return
	member_count++
	member_code[member_count] = line
	member_name[member_count] = names_of(line)
	member_text[member_count] = text
}

# The text for a member without a comment: its type, if that has a page.
function type_of(line,    words)
{
	sub(/^const /, "", line)
	split(line, words, /[ ;]/)
	if (words[1] ~ /^(enum|struct)$/ && (words[2] in page_of))
		return words[1] " " words[2]
	return ""
}

# The name that a line of a structure or an enumeration declares.
function names_of(line,    parts, n, i, names)
{
	if (match(line, /\(\*[a-z0-9_]+\)/))
		return substr(line, RSTART + 2, RLENGTH - 3)
	sub(/[;,]$/, "", line)
	n = split(line, parts, ",")
	names = ""
	for (i = 1; i <= n; i++) {
		sub(/ *[=:].*$/, "", parts[i])
		sub(/ *\[.*$/, "", parts[i])
		sub(/^.*[ *]/, "", parts[i])
		names = names (i > 1 ? ", " : "") parts[i]
	}
	return names
}
