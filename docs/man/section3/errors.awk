# SPDX-License-Identifier: BSD-2-Clause
# errors.awk - lists of errors at the end of a paragraph:
#
#	Returns 0, or a negative errno:
#	-EINVAL: what it means.
#	-EAGAIN: what it means, which may
#	take several lines.

# Takes such a list, with the sentence in front of it, out of a block of text. Returns the rest.
function take_errors(block,    list, head, at, from, n, i)
{
	if (!match(block, /\n-E[A-Z0-9]+: /))
		return block
	list = substr(block, RSTART + 3)
	head = substr(block, 1, RSTART - 1)
	for (from = 0; (at = index(substr(head, from + 1), "Returns ")) > 0; from += at)
		;
	if (from == 0 || head !~ /:$/)
		return block
	error_intro = substr(head, from)
	n = split(list, error_item, /\n-E/)
	for (i = 1; i <= n; i++) {
		error_item[i] = "-E" error_item[i]
		gsub(/\n/, " ", error_item[i])
	}
	error_count = n
	head = substr(head, 1, from - 1)
	sub(/[ \n]+$/, "", head)
	return head
}

function write_errors(    i)
{
	heading("RETURN VALUE")
	paragraphs(error_intro, 1)
	for (i = 1; i <= error_count; i++)
		returned_value(error_item[i])
	if (returned == "")
		return
	put(".PP")
	paragraphs(returned, 1)
}
