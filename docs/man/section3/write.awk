# SPDX-License-Identifier: BSD-2-Clause
# write.awk - a page, from NAME to FIELDS.

function begin_page(name)
{
	file = header_out[header] "/" name ".3"
	printf ".\\\" Made from %s.\n", header_include[header] >file
	put(".TH " name " 3 " date " \"weir " version "\" \"weir manual\"")
}

function put(line)
{
	print line >file
}

function heading(text)
{
	put(".SH " text)
}

function end_page()
{
	close(file)
}

function write_page(p,    i, own)
{
	page = p
	header = page_header[p]
	own = find_parameters(p)
	page_about[p] = type_of_variable(p) about(unit_text[page_unit[p]])
	begin_page(page_name[p])
	name_section(names_of_page(p, ", "), page_about[p])
	make_links(p)

	heading("SYNOPSIS")
	put(".nf")
	put(".B #include <" header_include[header] ">")
	for (i = 1; i <= page_decls[p]; i++)
		synopsis(page_decl[p, i], i > 1 ? page_decl[p, i - 1] : 0)
	put(".fi")

	sort_sentences(unit_text[page_unit[p]] page_more[p], own)
	if (description ~ /[^ \n]/)
		heading("DESCRIPTION")
	paragraphs(description, 1)
	for (i = 1; i <= page_decls[p]; i++)
		members(page_decl[p, i])
	return_value()
	if (own)
		thread_safety(p)
	see_also(p)
	end_page()
}

# All names that a page is about, its own name first.
function names_of_page(p, between,    i, d, names)
{
	names = page_name[p]
	for (i = 1; i <= page_decls[p]; i++) {
		d = page_decl[p, i]
		if (decl_kind[d] != "constant" && decl_name[d] != page_name[p])
			names = names between decl_name[d]
	}
	return names
}

# The other names are links to it.
function make_links(p,    i, n, names)
{
	n = split(names_of_page(p, " "), names, " ")
	for (i = 2; i <= n; i++)
		print "ln -sf " page_name[p] ".3 " header_out[header] "/" names[i] ".3" | "sh"
}

function name_section(names, text)
{
	heading("NAME")
	put(names " \\- " escaped(text))
	heading("LIBRARY")
	put("Adaptive concurrency limits")
	put(".RI ( lib" library_name() " \", \" \\-l" library_name() " )")
}

function library_name(    name)
{
	name = header_library[header]
	gsub(/-/, "\\-", name)
	return name
}

# A header's own page: what applies to the whole header, and what has no page of its own.
function write_header(h,    i)
{
	page = 0
	header = h
	split("", parameter)
	if (!has_own_page(h))
		return
	begin_page(header_page[h])
	name_section(header_page[h], about(header_about[h]))
	heading("SYNOPSIS")
	put(".B #include <" header_include[h] ">")
	heading("DESCRIPTION")
	paragraphs(header_text(h), 1)
	contents("FUNCTIONS", h, "^(function|macro)$")
	contents("VARIABLES", h, "^variable$")
	contents("TYPES", h, "^(struct|enum|typedef)$")
	if (constant_count[h] > 0)
		heading("CONSTANTS")
	for (i = 1; i <= constant_count[h]; i++) {
		put(".TP")
		put(bold(constant_name[h, i] constant_value(constant_code[h, i])))
		paragraphs(constant_text[h, i], 0)
	}
	if (cpp_count[h] > 0)
		cpp_sections(h)
	see_also(0)
	end_page()
}

# Functions, and then each class with its members.
function cpp_sections(h,    i, n)
{
	n = 0
	for (i = 1; i <= cpp_count[h]; i++) {
		if (cpp_of[h, i] != "")
			continue
		if (n++ == 0)
			cpp_heading("FUNCTIONS")
		cpp_entry(h, i)
	}
	n = 0
	for (i = 1; i <= cpp_count[h]; i++) {
		if (cpp_of[h, i] == "")
			continue
		if (n++ == 0)
			cpp_heading("CLASSES")
		cpp_entry(h, i)
	}
}

# Declarations are not justified.
function cpp_heading(text)
{
	heading(text)
	put(".ad l")
}

function cpp_entry(h, i,    names, n, k)
{
	if (cpp_is_class[h, i]) {
		put(".SS " quoted(escaped_code(cpp_name[h, i])))
		paragraphs(cpp_text[h, i], 1)
		return
	}
	n = split(cpp_name[h, i], names, "\n")
	for (k = 1; k <= n; k++) {
		put(k == 1 ? ".TP" : ".TQ")
		put(bold(names[k]))
	}
	paragraphs(cpp_text[h, i], 0)
}

# The opening comment, without its first sentence if NAME has it in full.
function header_text(h,    text)
{
	text = header_about[h]
	if (text == shortened(first_sentence(text)) && header_body[h] ~ /[^ \n]/)
		return header_body[h]
	return capital(text) ".\n\n" header_body[h]
}

function has_own_page(h,    p)
{
	for (p = 1; p <= page_count; p++)
		if (page_header[p] == h)
			return 1
	return constant_count[h] > 0 || cpp_count[h] > 0
}

# The value of a constant, if it is short. An enumerator may have none.
function constant_value(code)
{
	if (!sub(/^#define [A-Z0-9_]+(\([^)]*\))? /, "", code) && !sub(/^.*= /, "", code))
		return ""
	sub(/,$/, "", code)
	return length(code) <= 40 ? " = " code : ""
}

function contents(title, h, kinds,    p, n, names)
{
	n = 0
	for (p = 1; p <= page_count; p++) {
		if (page_header[p] != h || first_kind(p) !~ kinds)
			continue
		if (n++ == 0)
			heading(title)
		put(".TP")
		names = names_of_page(p, " \"(3), \" ")
		put(".BR " names " (3)")
		put(guarded(escaped(capital(page_about[p])) "."))
	}
}

function first_kind(p,    i)
{
	for (i = 1; decl_name[page_decl[p, i]] != page_name[p]; i++)
		;
	return decl_kind[page_decl[p, i]]
}

# The text in front of a variable's description: what its type is, if that has a page.
function type_of_variable(p,    d, words, text)
{
	if (first_kind(p) != "variable")
		return ""
	for (d = 1; decl_name[d] != page_name[p]; d++)
		;
	text = decl_text[d]
	sub(/^extern /, "", text)
	sub(/^const /, "", text)
	split(text, words, " ")
	if (!(words[2] in page_of))
		return ""
	text = shortened(first_sentence(unit_text[page_unit[page_of[words[2]]]]))
	sub(/^(an?|the) /, "", text)
	return text ": "
}

# The first sentence, shortened to a clause for the NAME section. Without one, or if it only says
# what is returned, the header's first sentence.
function about(text,    line)
{
	line = first_sentence(text)
	if (line == "" || line ~ /^(0[,;:]|-E)/)
		line = first_sentence(header_about[header])
	if (match(line, /^[a-z0-9_]+: /) && ("weir_" substr(line, 1, RLENGTH - 2)) in page_of)
		line = substr(line, RLENGTH + 1)
	return shortened(line)
}

function first_sentence(text,    words, n, i, line)
{
	sub(/\n\n.*$/, "", text)
	n = split(joined(text), words, " ")
	line = ""
	for (i = 1; i <= n; i++) {
		line = line (i > 1 ? " " : "") words[i]
		if (ends_sentence(words[i]))
			break
	}
	return line
}

function shortened(line)
{
	sub(/[.]$/, "", line)
	while (match(line, /[;:] /) && RSTART > 12)
		line = substr(line, 1, RSTART - 1)
	if (length(line) > 70)
		sub(/ \([^()]*(\(\))?[^()]*\)/, "", line)
	if (length(line) > 70 && match(substr(line, 20), /, /))
		line = substr(line, 1, 18 + RSTART)
	if (line ~ /^[A-Z][a-z ]/)
		line = tolower(substr(line, 1, 1)) substr(line, 2)
	return line
}

function capital(text)
{
	return toupper(substr(text, 1, 1)) substr(text, 2)
}

function members(d,    i)
{
	if (decl_kind[d] != "struct" && decl_kind[d] != "enum")
		return
	read_members(decl_text[d], decl_kind[d] == "struct")
	if (member_count == 0)
		return
	heading(decl_kind[d] == "struct" ? "FIELDS" : "VALUES")
	for (i = 1; i <= member_count; i++) {
		put(".TP")
		put(decl_kind[d] == "struct" ? italic(member_name[i]) : bold(member_name[i]))
		if (member_text[i] != "")
			paragraphs(member_text[i], 0)
		else
			put(bold(bare(member_code[i])))
	}
}

function bare(code)
{
	sub(/;$/, "", code)
	return code
}
