# SPDX-License-Identifier: BSD-2-Clause
# The manual pages of section 3, from the public headers: as Markdown, of which lowdown makes pages.
#
#	awk -v version=0.1.0 -v date=2026-11-21 -v filter=lowdown.sed -f section3.awk \
#		library=weir out=DIR HEADER... library=weir-fleet out=DIR HEADER...
#
# A header's opening comment makes its page, weir_limiter.h(3), with its constants. Another comment
# makes a page of the declarations below it, named after the first function or else type; the other
# names are links. Declarations without a comment belong to the page before. "Returns ...", with the
# errors that follow, goes to RETURN VALUE; "Any thread.", or else the header's paragraph "Thread
# safety.", to THREAD SAFETY. What is indented by a tab is code. A C++ header has one page.

BEGIN {
	comments = "[ \t]*/[*]([^*]|[*]+[^*/])*[*]+/"
	code_words = "([a-z0-9.>-]+_|WEIR_)[A-Za-z0-9_.>-]*[A-Za-z0-9]([(][)])?|[a-z]+[(][)]|-E[A-Z0-9]+"
}

FNR == 1 {
	include[++h] = FILENAME
	sub(/^.*include\//, "", include[h])
	header_name[h] = include[h]
	sub(/^weir\/weir\./, "weir.", header_name[h])
	sub(/\//, "_", header_name[h])
	lib[h] = library
	folder[h] = out
	comment = declaration = ""
	skip = "^\\{"
}

in_comment || (declaration == "" && /^\t?\/\*/ && !/SPDX-/) {
	if (!in_comment)
		end_unit()
	comment = comment $0 "\n"
	in_comment = !/\*\//
	if (!in_comment && header_text[h] == "") {
		header_text[h] = plain(comment)
		sub(/^[^ ]+ - /, "", header_text[h])
		comment = ""
	}
	next
}

# C++: all but bodies of functions and what is not public.
FILENAME ~ /hpp$/ {
	if (skip == "" && /^\t?\{$/ && !class)
		skip = /^\t/ ? "^\t}" : "^}"
	else if (/^(private|protected):$/)
		skip = "^(};|public:)"
	class = /^(class|struct)| class [a-z_]+( :.*)?$/
	if (skip == "" && !/^\} /)
		cpp[h] = cpp[h] (comment == "" ? "\t" : "\n" plain(comment) "\n\n\t") $0 "\n"
	else if ($0 ~ skip)
		skip = ""
	comment = ""
	next
}

declaration == "" && /^$/ { end_unit() }
declaration == "" && /^$|SPDX-|^#[^d]|^#define WEIR_([A-Z_]*_H$|API|MUST_CHECK)|^extern "C"|^\}/ { next }

{
	declaration = declaration $0 "\n"
	if (/\\$/ || (declaration ~ /^[^;#]*\{/ && !/^\}/) ||
	    (declaration ~ /^[^#{]*$/ && !/;[ \t]*(\/\*.*)?$/))
		next
	declare(declaration, bare(declaration))
	declaration = ""
}

END {
	for (i = 1; i <= pages; i++)
		write_page(i, page_header[i])
	for (i = 1; i <= h; i++)
		write_header(i)
}

# A comment without its marks.
function plain(text)
{
	sub(/[ \t]*\*\/[ \t\n]*$/, "", text)
	gsub(/\n[ \t]*\*+ ?/, "\n", text)
	sub(/^[ \t]*\/\*+[ \n]*/, "", text)
	return text
}

# A declaration in one line, without comments and attributes.
function bare(text)
{
	gsub(comments, "", text)
	gsub(/[ \t\n\\]+/, " ", text)
	gsub(/WEIR_(API|MUST_CHECK) /, "", text)
	sub(/ $/, "", text)
	return text
}

function is_type(code)
{
	return code ~ /^(typedef|(struct|enum) [a-z0-9_]+( \{|;))/
}

function name_of(code)
{
	if (!match(code, /^(struct|enum) [a-z0-9_]+( \{|;)/) && !match(code, /[a-z0-9_]+\(/))
		match(code, /[a-z0-9_]+(\[\])?;$/)
	code = substr(code, RSTART, RLENGTH)
	gsub(/^(struct|enum) |[^a-z0-9_]/, "", code)
	return code
}

# A comment to which nothing belongs is about the header.
function end_unit()
{
	header_text[h] = header_text[h] (comment == "" ? "" : "\n\n" plain(comment))
	comment = ""
	fresh = 0
}

function declare(raw, code,    type)
{
	if (code ~ /^(#define [A-Z]|enum \{)/) {
		constants[h] = constants[h] (comment == "" ? "" : "\n" comment) raw
		comment = ""
		return
	}
	if (comment == "" && code ~ /^struct [a-z0-9_]+;/)
		return
	type = is_type(code)
	if (!fresh && (comment != "" || page_header[pages] != h || type)) {
		page_text[++pages] = plain(comment)
		page_header[pages] = h
		fresh = 1
		comment = ""
	}
	if (page_name[pages] == "" || (fresh && page_is_type[pages] && !type)) {
		page_name[pages] = name_of(code)
		page_is_type[pages] = type
	}
	part[pages, ++parts[pages]] = raw
}

# Text as Markdown: names as code, errors as a list.
function markdown(text,    n, i, line, out)
{
	gsub(/:\n- /, ":\n\n- ", text)
	n = split(text, line, "\n")
	for (i = 1; i <= n; i++) {
		if (line[i] !~ /^\t/) {
			gsub(/[\\*<`~^#\[]/, "\\\\&", line[i])
			gsub(code_words, "`&`", line[i])
		}
		if (match(line[i], /^`-E[A-Z0-9]+`: /))
			line[i] = "\n" substr(line[i], 1, RLENGTH - 2) "\n: " substr(line[i], RLENGTH + 1)
		out = out line[i] "\n"
	}
	return out
}

# The first sentence, shortened to a clause.
function about(text)
{
	sub(/\n\n.*$/, "", text)
	gsub(/\n/, " ", text)
	sub(/^[a-z0-9_]+: /, "", text)
	if (match(text, /[.?!]( |$)/))
		text = substr(text, 1, RSTART - 1)
	if (match(substr(text, 12), /[;:] /))
		text = substr(text, 1, 10 + RSTART)
	if (length(text) > 70 && match(substr(text, 40), /, /))
		text = substr(text, 1, 38 + RSTART)
	if (text ~ /^[A-Z][a-z ]/)
		text = tolower(substr(text, 1, 1)) substr(text, 2)
	return text
}

function section(title, text)
{
	if (text ~ /[^ \n]/)
		print "# " title "\n\n" text | command
}

# Begins a page of header n.
function begin_page(n, name, names, text, synopsis)
{
	command = "lowdown -s -Tman --out-no-smarty --parse-no-intraemph -M title=" name \
		" -M section=3 -M date=" date " -M 'source=weir " version "' -M 'volume=weir manual'" \
		" | sed -f " filter " >" folder[n] "/" name ".3"
	section("NAME", names " - " text)
	section("LIBRARY", "Adaptive concurrency limits (lib" lib[n] ", -l" lib[n] ")")
	section("SYNOPSIS", "\t#include <" include[n] ">\n" synopsis)
}

function write_page(p, n,    i, code, names, name, functions, synopsis, types, text, threads, back)
{
	names = page_name[p]
	for (i = 1; i <= parts[p]; i++) {
		code = bare(part[p, i])
		functions += !is_type(code)
		synopsis = synopsis "\n" declared(part[p, i], code)
		types = types (code ~ /\{/ ? members(part[p, i]) : "")
		name = name_of(code)
		if (name != page_name[p]) {
			names = names ", " name
			print "ln -sf " page_name[p] ".3 " folder[n] "/" name ".3" | "sh"
		}
	}
	text = page_text[p]
	if (sub(/[ \n]*Any thread\./, "", text))
		threads = "May be called from any thread."
	else if (functions && (i = index(header_text[n], "\n\nThread safety. ")))
		threads = substr(header_text[n], i + 17)
	sub(/\n\n.*$/, "", threads)
	if (functions && match("  " text, /[ .:)"\n][ \n]Returns /) && (RSTART > 1 || text ~ /\n-E/)) {
		back = substr(text, RSTART)
		text = substr(text, 1, RSTART - 1)
		i = back ~ /\n-E/ ? 0 : index(back, "\n\n")
		text = text (i ? substr(back, i) : "")
		back = i ? substr(back, 1, i) : back
	}
	name = about(page_text[p] == "" ? header_text[n] : page_text[p])
	contents[n] = contents[n] "\n`" page_name[p] "`(3)\n: " markdown(name)
	begin_page(n, page_name[p], names, name, synopsis)
	section("DESCRIPTION", markdown(text))
	section(part[p, 1] ~ /^enum/ ? "VALUES" : "FIELDS", types)
	section("RETURN VALUE", markdown(back))
	section("THREAD SAFETY", markdown(threads))
	text = ""
	for (i = 1; i <= pages; i++)
		if (i != p && page_header[i] == n && (functions || !page_is_type[i]))
			text = text "`" page_name[i] "`(3), "
	section("SEE ALSO", text "`" header_name[n] "`(3), `weir`(7)")
	close(command)
}

function write_header(n)
{
	begin_page(n, header_name[n], header_name[n], about(header_text[n]))
	section("DESCRIPTION", markdown(toupper(substr(header_text[n], 1, 1)) substr(header_text[n], 2)))
	section("DECLARATIONS", markdown(cpp[n]))
	section("CONTENTS", contents[n])
	section("CONSTANTS", members(constants[n]))
	section("SEE ALSO", "`weir`(7)")
	close(command)
}

# A declaration as a synopsis has it: without comments, folded at commas.
function declared(raw, code,    out)
{
	if (code ~ /\{/) {
		gsub(comments, "", raw)
		gsub(/\n\n+/, "\n", raw)
		gsub(/\t/, "    ", raw)
		gsub(/\n/, "\n\t", raw)
		return "\t" raw
	}
	sub(/\) .*$/, ")", code)
	while (length(code) > 74 && match(substr(code, 1, 74), /.*, /)) {
		out = out "\t" substr(code, 1, RLENGTH - 1) "\n"
		code = "        " substr(code, RLENGTH + 1)
	}
	return out "\t" code
}

# The list of members of a type, or of constants, that have a comment, in front or behind.
function members(raw,    n, i, line, now, note)
{
	n = split(raw, line, "\n")
	listed = tags = member_text = ""
	for (i = 1; i < n; i++) {
		for (; line[i] ~ /\/\*/ && line[i] !~ /\*\//; i++)
			line[i + 1] = line[i] "\n" line[i + 1]
		note = match(line[i], /\/\*/) ? plain(substr(line[i], RSTART)) : ""
		now = now (note == "" ? line[i] : substr(line[i], 1, RSTART - 1))
		gsub(/[ \t]+/, " ", now)
		if (now ~ /^ ?$|^\}|\{ ?$/) {
			list_member()
			member_text = note
			now = ""
		} else if (now ~ /[;,] ?$/ || (now ~ /^#/ && now !~ /\\$/) || line[i + 1] ~ /^\}/) {
			gsub(/^ ?(#define )?|\\|[;,]? ?$/, "", now)
			if (member_text == "" || (note != "" && tags != ""))
				list_member()
			tags = tags (tags == "" ? "" : "`, `") now
			member_text = member_text (member_text == "" || note == "" ? "" : "\n\n") note
			if (note != "")
				list_member()
			now = ""
		}
	}
	list_member()
	return listed
}

function list_member()
{
	member_text = markdown(member_text)
	gsub(/\n\n/, "\n\n  ", member_text)
	if (tags != "" && (member_text != "" || tags ~ /^WEIR/))
		listed = listed "\n`" tags "`\n" (member_text == "" ? "" : ": ") member_text
	tags = member_text = ""
}
