# SPDX-License-Identifier: BSD-2-Clause
# sections.awk - RETURN VALUE, THREAD SAFETY and SEE ALSO: what goes where.

# Splits the text of a page into description, returned and threads.
function sort_sentences(text, api,    blocks, n, i, words, m, j, sentence, kept)
{
	returned = threads = description = ""
	error_count = 0
	if (!api) {
		description = text
		return
	}
	n = split(text, blocks, /\n\n/)
	for (i = 1; i <= n; i++) {
		blocks[i] = take_errors(blocks[i])
		if (blocks[i] ~ /^[ \t]/ || blocks[i] ~ / (does|do) the same/) {
			description = description "\n\n" blocks[i]
			continue
		}
		kept = sentence = ""
		m = split(blocks[i], words, /[ \n]+/)
		for (j = 1; j <= m; j++) {
			sentence = sentence (sentence == "" ? "" : " ") words[j]
			if (j < m && (!ends_sentence(words[j]) || words[j + 1] !~ /^[A-Z0-9*"(-]/) &&
			    !(ends_sentence(words[j]) && (words[j + 1] in parameter)))
				continue
			if (sentence ~ /^(0|-1)([,;: ]|$)/ || sentence ~ /^(-E[A-Z]|Returns? |The number |How many)/)
				returned = returned (returned == "" ? "" : " ") sentence
			else if (sentence ~ /^(Any thread|One thread|Thread-safe|Not thread)/)
				threads = threads (threads == "" ? "" : " ") sentence
			else
				kept = kept (kept == "" ? "" : " ") sentence
			sentence = ""
		}
		if (kept != "")
			description = description "\n\n" kept
	}
	if (description !~ /[^ \n]/ && returned !~ /^(0[,;:]|-E)/) {
		description = returned
		returned = ""
	}
}

# "D.-M.", "e.g." and "L." do not end a sentence.
function ends_sentence(word)
{
	sub(/["')\]]+$/, "", word)
	return word ~ /[.?!]$/ && word !~ /\..*\.$/ && word !~ /^[A-Z]\.$/ &&
		word !~ /^(cf|vs|etc)\.$/
}

# "0; -EAGAIN: one thing; -EINVAL: another." is a list; everything else is sentences.
function return_value(    list, n, i, text, rest)
{
	if (error_count > 0) {
		write_errors()
		return
	}
	if (returned == "")
		return
	text = returned
	heading(text ~ /^-E/ ? "ERRORS" : "RETURN VALUE")
	sub(/^0, or -E/, "0; -E", text)
	gsub(/\. -E/, ".; -E", text)
	n = split(text, list, /; /)
	rest = n > 2 && list[n] ~ /^or [a-z]/ ? list[n--] : ""
	for (i = 1; i <= n; i++)
		if (list[i] !~ /^(0$|0: |-E[A-Z0-9]+: |-ENOMEM\.?$)/)
			break
	if (i <= n || n < 2) {
		paragraphs(returned, 1)
		return
	}
	for (i = 1; i <= n; i++)
		returned_value(list[i])
	if (rest != "") {
		put(".PP")
		paragraphs(capital(rest), 1)
	}
}

function returned_value(text,    value)
{
	if (match(text, /: /)) {
		value = substr(text, 1, RSTART - 1)
		text = substr(text, RSTART + 2)
	} else {
		value = text
		sub(/\.$/, "", value)
		text = value == "0" ? "success" : "out of memory"
	}
	sub(/\.?$/, ".", text)
	put(".TP")
	put(bold(value))
	paragraphs(text, 0)
}

function thread_safety(p,    blocks, n, i, many)
{
	many = 0
	for (i = 1; i <= page_decls[p]; i++)
		many += decl_kind[page_decl[p, i]] == "function"
	if (threads != "") {
		sub(/^Any thread\./, (many > 1 ? "These functions" : "This function") \
			" may be called from any thread.", threads)
	} else {
		n = split(header_body[header], blocks, /\n\n/)
		for (i = 1; i <= n && threads == ""; i++)
			if (blocks[i] !~ /^[ \t]/ &&
			    blocks[i] ~ /(^Thread safety\.)|([Aa]ny|[Oo]ne|[Ss]ame) thread/)
				threads = blocks[i]
		sub(/^Thread safety\. /, "", threads)
		sub(/(function|one) here/, "function of " header_include[header], threads)
	}
	if (threads == "")
		return
	heading("THREAD SAFETY")
	paragraphs(threads, 1)
}

# --- References ------------------------------------------------------------------------

# The header's functions, and the types that the declarations use; for a header, other headers.
function see_also(p,    q, i, n, d, names, words, m)
{
	heading("SEE ALSO")
	put(".ad l")
	split("", seen)
	n = 0
	for (q = 1; p > 0 && q <= page_count; q++)
		if (q != p && page_header[q] == header && first_kind(q) ~ /^(function|macro|variable)$/)
			see_page(q)
	for (q = 1; p == 0 && q <= header_count; q++)
		if (q != header && has_own_page(q) && is_near(q))
			seen[header_page[q]] = 1
	for (i = 1; p > 0 && i <= page_decls[p]; i++) {
		m = split(decl_text[page_decl[p, i]], words, /[^a-z0-9_]+/)
		for (d = 1; d <= m; d++)
			if ((words[d] in page_of) && page_of[words[d]] != p)
				see_page(page_of[words[d]])
	}
	if (p > 0)
		seen[header_page[header]] = 1
	for (i in seen)
		names[++n] = i
	sort(names, n)
	for (i = 1; i <= n; i++)
		put(".BR \\%" names[i] " (3),")
	put(".BR weir (7)")
}

# Whether a header is of the same library, or of the one that all others need.
function is_near(h)
{
	return header_library[h] == header_library[header] || header_library[h] == "weir"
}

function see_page(p,    i, n, names)
{
	n = split(names_of_page(p, " "), names, " ")
	for (i = 1; i <= n; i++)
		seen[names[i]] = 1
}

function sort(list, n,    i, j, name)
{
	for (i = 2; i <= n; i++) {
		name = list[i]
		for (j = i - 1; j > 0 && list[j] > name; j--)
			list[j + 1] = list[j]
		list[j + 1] = name
	}
}
