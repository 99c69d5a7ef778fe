# SPDX-License-Identifier: BSD-2-Clause
# read.awk - from lines of headers to units: a comment and its declarations.

function begin_header(path,    name)
{
	name = path
	sub(/^.*include\//, "", name)
	header_count++
	header_include[header_count] = name
	header_library[header_count] = library
	header_out[header_count] = out
	header_cpp[header_count] = name ~ /\.hpp$/
	gsub(/\//, "_", name)
	sub(/^weir_weir\./, "weir.", name)
	header_page[header_count] = name
	depth = unit = last_unit = opened = 0
	comment = declaration = ""
	in_comment = in_define = has_comment = 0
	cpp_head = cpp_class = ""
	cpp_body = cpp_open = 0
}

function read_line(line)
{
	if (in_comment) {
		comment = comment "\n" line
		if (line ~ /\*\//)
			end_comment()
	} else if (in_define) {
		declaration = declaration "\n" line
		if (line !~ /\\$/)
			end_define()
	} else if (declaration != "") {
		continue_declaration(line)
	} else if (header_cpp[header_count]) {
		read_cpp(line)
	} else if (line ~ /^[ \t]*$/) {
		end_unit()
	} else if (line ~ /^\/\*/) {
		begin_comment(line)
	} else if (line ~ /^[ \t]*#[ \t]*if/) {
		depth++
	} else if (line ~ /^[ \t]*#[ \t]*endif/) {
		depth--
	} else if (depth > 1 || line ~ /^(extern "C" \{|\})$/) {
		return # for C++, or for other compilers
	} else if (line ~ /^[ \t]*#[ \t]*define/) {
		declaration = line
		in_define = 1
		if (line !~ /\\$/)
			end_define()
	} else if (line !~ /^[ \t]*#/) {
		continue_declaration(line)
	}
}

function begin_comment(line)
{
	end_unit()
	comment = line
	in_comment = 1
	if (line ~ /\*\//)
		end_comment()
}

# The first comment of a file is about the file, and so is a comment that nothing follows.
function end_comment(    text, n)
{
	in_comment = 0
	text = plain(comment)
	comment = ""
	if (opened) {
		pending = text
		has_comment = 1
		return
	}
	opened = 1
	n = index(text "\n\n", "\n\n")
	header_about[header_count] = joined(substr(text, 1, n - 1))
	sub(/^[^ ]+ - /, "", header_about[header_count])
	sub(/\.$/, "", header_about[header_count])
	header_body[header_count] = substr(text, n + 2)
}

function end_unit()
{
	if (has_comment)
		header_body[header_count] = header_body[header_count] "\n\n" pending
	has_comment = unit = late = 0
}

# A comment without its marks.
function plain(raw,    lines, n, i, text)
{
	sub(/\*\/[ \t]*$/, "", raw)
	n = split(raw, lines, "\n")
	text = ""
	for (i = 1; i <= n; i++) {
		sub(/^[ \t]*\/?\*+ ?/, "", lines[i])
		sub(/[ \t]+$/, "", lines[i])
		text = text (i > 1 ? "\n" : "") lines[i]
	}
	sub(/^\n+/, "", text)
	sub(/\n+$/, "", text)
	return text
}

function joined(text)
{
	gsub(/[ \t\n]+/, " ", text)
	sub(/^ /, "", text)
	sub(/ $/, "", text)
	return text
}

function end_define(    text, note, n)
{
	in_define = 0
	text = declaration
	declaration = ""
	note = ""
	n = index(text, "/*")
	if (n > 0) {
		note = plain(substr(text, n))
		text = substr(text, 1, n - 1)
	}
	gsub(/[ \t]*\\\n[ \t]*/, " ", text)
	text = joined(text)
	sub(/^# define/, "#define", text)
	if (match(text, /^#define [a-z][a-z0-9_]*\(/))
		declare("macro", substr(text, 9, RLENGTH - 9), text, note)
	else if (match(text, /^#define [A-Z][A-Z0-9_]*(\([^)]*\))? ./))
		declare("constant", substr(text, 9, RLENGTH - 10), text, note)
}

function continue_declaration(line)
{
	declaration = declaration line "\n"
	if (complete(declaration)) {
		line = declaration
		declaration = ""
		end_declaration(line)
	}
}

# Whether these lines are a whole declaration. Sets code (without comments), and after
# (what follows the last semicolon).
function complete(raw,    rest, n, m, braces, i, c)
{
	code = ""
	rest = raw
	after = ""
	while ((n = index(rest, "/*")) > 0) {
		m = index(substr(rest, n + 2), "*/")
		if (m == 0)
			return 0
		code = code substr(rest, 1, n - 1) " "
		if (substr(rest, 1, n - 1) ~ /[;}][ \t]*$/)
			after = substr(rest, n, m + 3)
		else
			after = ""
		rest = substr(rest, n + m + 3)
	}
	if (rest ~ /[^ \t\n]/)
		after = ""
	code = code rest
	braces = 0
	for (i = 1; i <= length(code); i++) {
		c = substr(code, i, 1)
		if (c == "{")
			braces++
		else if (c == "}")
			braces--
	}
	if (braces != 0)
		return 0
	code = joined(code)
	return code ~ /;$/ || (code ~ /\}$/ && code !~ /^(typedef |struct |enum |union )/)
}

function end_declaration(raw,    note, name)
{
	note = after == "" ? "" : plain(after)
	while (sub(/^WEIR_[A-Z_]+(\([^)]*\))? /, "", code) ||
	       sub(/ WEIR_[A-Z_]+(\([^)]*\))?;$/, ";", code))
		; # attributes
	if (code ~ /^(struct|union|enum) [a-z0-9_]+;$/) {
		name = code
		gsub(/^[a-z]+ |;$/, "", name)
		if (has_comment)
			declare("struct", name, code, "")
	} else if (code ~ /^enum \{/) {
		declare("values", "", raw, note)
	} else if (match(code, /^(struct|union|enum) [a-z0-9_]+ \{/)) {
		name = substr(code, 1, RLENGTH - 2)
		sub(/^[a-z]+ /, "", name)
		declare(code ~ /^enum/ ? "enum" : "struct", name, raw, note)
	} else if (code ~ /^typedef /) {
		declare("typedef", typedef_name(code), raw, note)
	} else if (code !~ /\(/) {
		name = code
		sub(/(\[.*)?;$/, "", name)
		sub(/^.*[ *]/, "", name)
		declare("variable", name, code, note)
	} else {
		sub(/ ?\{.*$/, ";", code)
		sub(/^static inline /, "", code)
		name = substr(code, 1, index(code, "(") - 1)
		sub(/^.*[ *]/, "", name)
		declare("function", name, code, note)
	}
}

function typedef_name(text)
{
	if (match(text, /\(\*[a-z0-9_]+\)/))
		return substr(text, RSTART + 2, RLENGTH - 3)
	if (text !~ /\}/ && match(text, /[a-z0-9_]+\(/))
		return substr(text, RSTART, RLENGTH - 1)
	sub(/;$/, "", text)
	sub(/^.*[ *}]/, "", text)
	return text
}

# A declaration goes to the unit of the comment above it, or opens one, or joins the last.
function declare(kind, name, text, note,    d)
{
	d = ++decl_count
	decl_kind[d] = kind
	decl_name[d] = name
	decl_text[d] = text
	decl_note[d] = note
	if (has_comment)
		begin_unit(pending)
	else if (unit > 0 && (note == "" || unit_commented[unit]))
		;
	else if (note != "" || !joins(kind))
		begin_unit(note)
	else
		late = unit = last_unit
	if (late)
		decl_late[d] = 1
	decl_unit[d] = unit
	last_kind = kind
	if (kind == "constant" || kind == "values")
		last_unit = 0
}

# Whether a declaration without a comment belongs to the unit before it: a function to the type
# or function before it, a type to another type.
function joins(kind)
{
	if (last_unit == 0 || kind == "constant" || kind == "values")
		return 0
	return kind ~ /^(function|macro)$/ || last_kind ~ /^(struct|enum|typedef)$/
}

function begin_unit(text)
{
	unit = last_unit = ++unit_count
	unit_header[unit] = header_count
	unit_commented[unit] = has_comment
	unit_text[unit] = text
	has_comment = 0
}

# Reads the public declarations of C++, down to the members of classes. Bodies of functions are
# skipped.
function read_cpp(line,    note)
{
	if (line ~ /^[ \t]*\/\*/) {
		comment = line
		in_comment = 1
		if (line ~ /\*\//)
			end_comment()
		return
	}
	note = ""
	if (match(line, /\/\*.*\*\//)) {
		note = plain(substr(line, RSTART, RLENGTH))
		line = substr(line, 1, RSTART - 1)
	}
	sub(/\/\/.*$/, "", line)
	line = joined(line)
	if (cpp_body > 0) {
		cpp_body += braces(line)
		has_comment = 0
	} else if (line ~ /^(public|protected|private):$/) {
		cpp_access = line
	} else if (line == "" || line ~ /^#/ || line ~ /^namespace / ||
		   (cpp_head == "" && line ~ /^[{}];?$/)) {
		if (line == "};")
			cpp_class = ""
		has_comment = 0
	} else {
		continue_cpp(line, note)
	}
}

# How many more brackets are opened than closed.
function braces(line)
{
	gsub(/"[^"]*"/, "", line)
	return gsub(/\{/, "", line) - gsub(/\}/, "", line)
}

function continue_cpp(line, note,    head, text)
{
	head = cpp_head = joined(cpp_head " " line)
	gsub(/\{\}/, "\001", head)
	if (head !~ /[;{]/)
		return
	cpp_head = ""
	text = has_comment ? pending : note
	cpp_behind = !has_comment && note != ""
	has_comment = 0
	if (head ~ /^(template <[^>]*> )?(class|struct) .*\{$/ && cpp_class == "") {
		cpp_class = head
		cpp_access = head ~ /class / ? "private:" : "public:"
		sub(/ \{$/, "", cpp_class)
		add_cpp(cpp_class, text, 1)
		return
	}
	cpp_body = braces(head)
	sub(/ ?[;{].*$/, "", head)
	sub(/\) noexcept : .*$/, ") noexcept", head)
	sub(/\) : .*$/, ")", head)
	sub(/\[\[gnu::always_inline\]\] /, "", head)
	sub(/\001$/, "", head)
	gsub(/\001/, "{}", head)
	if (cpp_class == "" || cpp_access == "public:")
		add_cpp(head, text, 0)
}

# A declaration without a comment belongs to the one before it in its class, if that has a comment
# in front. Trivial declarations are left out.
function add_cpp(head, text, is_class,    h, n)
{
	h = header_count
	n = cpp_count[h]
	if (head ~ /= delete$/ || (text == "" && head ~ /(= default$|^~)/))
		return
	if (text == "" && cpp_open && cpp_of[h, n] == cpp_class) {
		cpp_name[h, n] = cpp_name[h, n] "\n" head
		return
	}
	n = ++cpp_count[h]
	cpp_name[h, n] = head
	cpp_text[h, n] = text
	cpp_of[h, n] = cpp_class
	cpp_is_class[h, n] = is_class
	cpp_open = !is_class && !cpp_behind
}
