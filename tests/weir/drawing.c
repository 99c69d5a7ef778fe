/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drawing.c - a screen as SVG: runs of characters of one style, at their columns.
 */
#include "terminal.h"

#include <stdio.h>
#include <string.h>

/* Of a character, in pixels. */
#define WIDTH  8
#define HEIGHT 17
#define MARGIN 10

struct look {
	bool bold, underline, reverse, red;
};

static struct look look_of(const VTermScreenCell *cell)
{
	return (struct look){
		.bold = cell->attrs.bold,
		.underline = cell->attrs.underline != 0,
		.reverse = cell->attrs.reverse,
		.red = VTERM_COLOR_IS_INDEXED(&cell->fg) && cell->fg.indexed.idx == 1,
	};
}

static bool same(struct look a, struct look b)
{
	return a.bold == b.bold && a.underline == b.underline && a.reverse == b.reverse &&
	       a.red == b.red;
}

static VTermScreenCell cell_at(const struct terminal *t, int row, int column)
{
	VTermScreenCell cell;

	vterm_screen_get_cell(t->screen, (VTermPos){.row = row, .col = column}, &cell);
	return cell;
}

static void write_character(FILE *file, unsigned long c)
{
	char text[5];

	terminal_utf8(c != 0 ? c : ' ', text);
	if (c == '<')
		fputs("&lt;", file);
	else if (c == '&')
		fputs("&amp;", file);
	else
		fputs(text, file);
}

static const char *colour_of(struct look look)
{
	if (look.reverse)
		return "#1c2128";
	return look.red ? "#ff7b72" : look.bold ? "#ffffff" : "#c9d1d9";
}

static void write_run(FILE *file, const struct terminal *t, int row, int from, int to)
{
	const VTermScreenCell first = cell_at(t, row, from);
	const struct look look = look_of(&first);
	const int x = MARGIN + from * WIDTH, y = MARGIN + row * HEIGHT;
	const int width = (to - from) * WIDTH;

	if (look.reverse)
		fprintf(file,
			"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#c9d1d9\"/>\n",
			x, y, width, HEIGHT);
	fprintf(file, "<text x=\"%d\" y=\"%d\" textLength=\"%d\" fill=\"%s\"%s%s>", x,
		y + HEIGHT - 4, width, colour_of(look), look.bold ? " font-weight=\"bold\"" : "",
		look.underline ? " text-decoration=\"underline\"" : "");
	for (int column = from; column < to; column++)
		write_character(file, cell_at(t, row, column).chars[0]);
	fputs("</text>\n", file);
}

/* Blanks in no style of their own are left out. */
static bool is_blank(const struct terminal *t, int row, int from, int to)
{
	bool blank = true;

	for (int column = from; column < to && blank; column++) {
		const VTermScreenCell cell = cell_at(t, row, column);
		const struct look look = look_of(&cell);

		blank = (cell.chars[0] == 0 || cell.chars[0] == ' ') && !look.reverse &&
			!look.underline;
	}
	return blank;
}

static void write_row(FILE *file, const struct terminal *t, int row)
{
	for (int from = 0, to; from < t->columns; from = to) {
		const VTermScreenCell first = cell_at(t, row, from);

		for (to = from + 1; to < t->columns; to++) {
			const VTermScreenCell next = cell_at(t, row, to);

			if (!same(look_of(&first), look_of(&next)))
				break;
		}
		if (!is_blank(t, row, from, to))
			write_run(file, t, row, from, to);
	}
}

bool drawing_write(const struct terminal *t, const char *path)
{
	const int width = 2 * MARGIN + t->columns * WIDTH, height = 2 * MARGIN + t->rows * HEIGHT;
	FILE *file = fopen(path, "w");
	bool good;

	if (file == NULL)
		return false;
	fprintf(file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"monospace\" font-size=\"13\" "
		"xml:space=\"preserve\">\n<rect width=\"%d\" height=\"%d\" rx=\"6\" "
		"fill=\"#1c2128\"/>\n",
		width, height, width, height, width, height);
	for (int row = 0; row < t->rows; row++)
		write_row(file, t, row);
	fputs("</svg>\n", file);
	good = ferror(file) == 0;
	return fclose(file) == 0 && good;
}
