/* SPDX-License-Identifier: BSD-2-Clause */
#include "page.h"

#include <ncurses.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "bars.h"

static attr_t attributes_of(enum style style)
{
	switch (style) {
	case BOLD:
		return A_BOLD;
	case DIM:
		return A_DIM;
	case CHOSEN:
		return A_REVERSE;
	case HEADER:
		return A_BOLD | A_UNDERLINE;
	case ALARM:
		return A_BOLD | (has_colors() ? (attr_t)COLOR_PAIR(1) : 0);
	case PLAIN:
		break;
	}
	return A_NORMAL;
}

/* Whether the row is between the title, or what stays above it, and the keys. */
static bool on_screen(const struct page *page)
{
	return !page->hidden && page->row >= 1 && page->row > page->above && page->row < LINES - 1;
}

int page_left(const struct page *page)
{
	return COLS - page->column;
}

void page_line(struct page *page, enum style style)
{
	page->row++;
	page->column = 0;
	page->style = style;
	if (on_screen(page))
		move(page->row, 0);
	attrset((int)attributes_of(style));
}

void page_end(struct page *page)
{
	if (on_screen(page) && page->column < COLS)
		hline(' ' | attributes_of(page->style), COLS - page->column);
	page->column = COLS;
	attrset(A_NORMAL);
}

/* Print what fits, counted in columns; then pad with blanks to width, if that is not 0. */
static void put(struct page *page, const char *text, int width)
{
	const int edge = width > 0 && width < page_left(page) ? page->column + width : COLS;
	mbstate_t state;

	memset(&state, 0, sizeof(state));
	while (*text != '\0' && page->column < edge) {
		wchar_t c;
		size_t n = mbrtowc(&c, text, MB_CUR_MAX, &state);
		int columns;

		if (n == (size_t)-1 || n == (size_t)-2)
			break;
		columns = wcwidth(c);
		if (columns < 0 || page->column + columns > edge)
			break;
		if (on_screen(page))
			mvaddnstr(page->row, page->column, text, (int)n);
		page->column += columns;
		text += n;
	}
	for (; width > 0 && page->column < edge; page->column++)
		if (on_screen(page))
			mvaddch(page->row, page->column, ' ');
	if (on_screen(page) && page->column < COLS)
		move(page->row, page->column);
}

void page_text(struct page *page, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	put(page, text, 0);
}

void page_shown(struct page *page, const char *raw, int width)
{
	char shown[4 * 1024];

	if (width > 0)
		put(page, name_shown(raw, shown, sizeof(shown)), width);
}

/* The highest of the points that fall into one column, or NULL. */
static const struct point *highest_in(const struct past *past, unsigned from, unsigned to,
				      double (*of)(const struct point *point))
{
	const struct point *most = NULL;

	for (unsigned back = to; back < from; back++) {
		const struct point *point = past_point(past, back);

		if (point != NULL && (most == NULL || of(point) > of(most)))
			most = point;
	}
	return most;
}

static double highest_of_all(const struct past *past, double (*of)(const struct point *point))
{
	const struct point *most = highest_in(past, PAST, 0, of);

	return most != NULL ? of(most) : 0;
}

static bool refused_in(const struct past *past, unsigned from, unsigned to)
{
	bool refused = false;

	for (unsigned back = to; back < from; back++) {
		const struct point *point = past_point(past, back);

		refused |= point != NULL && point->rates.rejected > 0;
	}
	return refused;
}

void page_bars(struct page *page, const struct past *past, double (*of)(const struct point *point),
	       double highest, int columns, bool unicode)
{
	const double most = highest > 0 ? highest : highest_of_all(past, of);

	for (int i = 0; i < columns; i++) {
		const unsigned from = (unsigned)(PAST * (columns - i) / columns);
		const unsigned to = (unsigned)(PAST * (columns - i - 1) / columns);
		const struct point *point = highest_in(past, from, to, of);

		if (refused_in(past, from, to) && page->style == PLAIN)
			attrset((int)attributes_of(ALARM));
		put(page, bars_one(point != NULL ? of(point) : 0, most, unicode), 0);
		attrset((int)attributes_of(page->style));
	}
}
