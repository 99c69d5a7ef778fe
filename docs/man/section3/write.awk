# write.awk - a page, from NAME to FIELDS.

function begin_page(name)
{
	file = out "/" name ".3"
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
	page_about[p] = about(unit_text[page_unit[p]])
	begin_page(page_name[p])
	name_section(names_of_page(p), page_about[p])

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

# All names that a page is about; those that it is not called by are links to it.
function names_of_page(p,    i, d, names)
{
	names = page_name[p]
	for (i = 1; i <= page_decls[p]; i++) {
		d = page_decl[p, i]
		if (decl_kind[d] != "constant" && decl_name[d] != page_name[p]) {
			names = names ", " decl_name[d]
			print "ln -sf " page_name[p] ".3 " out "/" decl_name[d] ".3" | "sh"
		}
	}
	return names
}

function name_section(names, text)
{
	heading("NAME")
	put(names " \\- " escaped(text))
	heading("LIBRARY")
	put("Adaptive concurrency limits")
	put(".RI ( libweir \", \" \\-lweir )")
}

# A header's own page: what holds for all of it, and what has no page of its own.
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
		heading("DECLARATIONS")
	for (i = 1; i <= cpp_count[h]; i++) {
		put(".TP")
		put(bold(cpp_name[h, i]))
		paragraphs(cpp_text[h, i], 0)
	}
	see_also(0)
	end_page()
}

# What the opening comment says, but for a first sentence that NAME has in full.
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

# A short value says more than a long one. An enumerator may have none.
function constant_value(code)
{
	if (!sub(/^#define [A-Z0-9_]+(\([^)]*\))? /, "", code) && !sub(/^.*= /, "", code))
		return ""
	sub(/,$/, "", code)
	return length(code) <= 40 ? " = " code : ""
}

function contents(title, h, kinds,    p, n)
{
	n = 0
	for (p = 1; p <= page_count; p++) {
		if (page_header[p] != h || first_kind(p) !~ kinds)
			continue
		if (n++ == 0)
			heading(title)
		put(".TP")
		put(".BR " page_name[p] " (3)")
		put(guarded(escaped(capital(page_about[p])) "."))
	}
}

function first_kind(p,    i)
{
	for (i = 1; decl_name[page_decl[p, i]] != page_name[p]; i++)
		;
	return decl_kind[page_decl[p, i]]
}

# The first sentence, as the NAME section wants it: short, and a clause. What has none but of what
# is returned, or none at all, is what the header is.
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
	read_members(decl_text[d])
	if (member_count == 0)
		return
	heading(decl_kind[d] == "struct" ? "FIELDS" : "VALUES")
	for (i = 1; i <= member_count; i++) {
		put(".TP")
		put(decl_kind[d] == "struct" ? italic(member_name[i]) : bold(member_name[i]))
		paragraphs(member_text[i], 0)
	}
}
