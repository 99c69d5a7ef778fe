# SPDX-License-Identifier: BSD-2-Clause
# text.awk - prose and code in the fonts of a manual page.

# Paragraphs, code and lists of a comment. The first begins with .PP unless it follows a tag.
function paragraphs(text, apart,    lines, n, i, line, code, list, gap, words)
{
	n = split(text, lines, "\n")
	code = list = 0
	gap = apart ? 1 : 0
	words = ""
	first_paragraph = 1
	for (i = 1; i <= n + 1; i++) {
		line = i <= n ? lines[i] : ""
		if (line ~ /^(\t|    )/ && (words == "" || code)) {
			if (!code)
				put((first_paragraph ? "" : apart ? ".PP\n" : ".IP\n") ".in +4n\n.EX")
			else if (gap)
				put("")
			code = 1
			gap = first_paragraph = 0
			sub(/^(\t|    )/, "", line)
			gsub(/\t/, "    ", line)
			put(guarded(escaped_code(line)))
			continue
		}
		if (line == "") {
			if (words != "")
				paragraph(words, apart, list)
			words = ""
			gap = 1
			continue
		}
		if (code)
			put(".EE\n.in")
		code = 0
		if (line ~ /^ *- / && (gap || list || words ~ /:$/)) {
			if (words != "")
				paragraph(words, apart, list)
			words = ""
			list = 1
			sub(/^ *- /, "", line)
		} else if (gap && line !~ /^  /) {
			list = 0
		}
		gap = 0
		words = words " " joined(line)
	}
	if (code)
		put(".EE\n.in")
}

function paragraph(text, apart, list,    words, n, i, line, column, styled_word, label)
{
	if (list)
		put(".IP \\(bu 2")
	else if (!first_paragraph)
		put(apart ? ".PP" : ".IP")
	first_paragraph = 0
	label = ""
	if (page == 0 && match(text, /^ [A-Z][a-z]+( [a-z]+)?\. [A-Z]/)) {
		label = substr(text, 2, RLENGTH - 3)
		text = substr(text, RLENGTH)
		put(".BR " quoted(label))
	}
	n = split(joined(text), words, " ")
	line = ""
	column = 0
	for (i = 1; i <= n; i++) {
		if (column > 0 && column + 1 + length(words[i]) > width) {
			put(guarded(line))
			line = ""
			column = 0
		}
		styled_word = styled(words[i], i > 1 ? words[i - 1] : "")
		line = line (column > 0 ? " " : "") styled_word
		column += (column > 0) + length(words[i])
		if (ends_sentence(words[i])) {
			put(guarded(line))
			line = ""
			column = 0
		}
	}
	if (line != "")
		put(guarded(line))
}

function quoted(text)
{
	return "\"" text "\""
}

# A line that begins with a dot or a quote would be a command.
function guarded(line)
{
	return line ~ /^[.']/ ? "\\&" line : line
}

function bold(text)
{
	return text == "" ? "" : "\\fB" escaped_code(text) "\\fP"
}

function italic(text)
{
	return "\\fI" escaped_code(text) "\\fP"
}

function escaped(text)
{
	gsub(/\\/, "\\e", text)
	gsub(/--/, "\\-\\-", text)
	gsub(/\^/, "\\(ha", text)
	gsub(/~/, "\\(ti", text)
	return text
}

function escaped_code(text)
{
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	gsub(/\^/, "\\(ha", text)
	gsub(/~/, "\\(ti", text)
	gsub(/'/, "\\(aq", text)
	gsub(/`/, "\\(ga", text)
	return text
}

# A word of prose, in the font of its kind.
function styled(word, before,    front, behind)
{
	front = behind = ""
	while (word ~ /^[("\[]./) {
		front = front substr(word, 1, 1)
		word = substr(word, 2)
	}
	if (word ~ /.'s[.,;:)]*$/) {
		match(word, /'s[.,;:)]*$/)
		behind = substr(word, RSTART)
		word = substr(word, 1, RSTART - 1)
	}
	while (word ~ /.[.,;:!?"\])]$/ && word !~ /[a-z0-9_]\(\)$/) {
		behind = substr(word, length(word)) behind
		word = substr(word, 1, length(word) - 1)
	}
	word = escaped(front) styled_core(word, before) escaped(behind)
	if (front != "" && sub(/\\%/, "", word))
		word = "\\%" word # inside a word it would allow what it forbids in front
	return word
}

function styled_core(word, before,    name)
{
	name = word
	if (sub(/\(\)$/, "", name) && name ~ /^[a-z0-9_]+$/)
		return "\\%" bold(name) ((name in page_of) && page_of[name] != page ? "(3)" : "()")
	if (word ~ /^-E[A-Z0-9]+$/ || word ~ /^WEIR_[A-Z0-9_]+$/)
		return "\\%" bold(word)
	if ((word in page_of) && page_of[word] != page && before ~ /^(struct|enum)$/)
		return "\\%" italic(word) "(3)"
	if (word ~ /^[a-z0-9.>-]+_[a-z0-9_.>-]*$/ || word ~ /^[a-z]+->[a-z_]+$/ ||
	    word ~ /^(\*|&)[a-z_]+$/ || word ~ /^[a-z]+\/[a-z\/-]+\.[a-z]+$/)
		return "\\%" italic(word)
	if ((word in parameter) && word != "now" &&
	    tolower(before) !~ /^(an?|the|that|this|its|his|no|any|one|every|each|another|other|which)$/)
		return "\\%" italic(word)
	return escaped(word)
}
