/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page.h - text on the screen, line by line.
 */
#ifndef PAGE_H
#define PAGE_H

#include "limiters.h"

#include <stdbool.h>

/* Text styles. They emphasize; no information is in the style alone. */
enum style {
	PLAIN,
	BOLD,
	DIM,
	CHOSEN, /* under the cursor */
	HEADER,
	ALARM, /* calls are being refused */
};

/*
 * The rows between the first and the last row of the screen, which have the title and the keys.
 * Text above, below or to the right of them is clipped.
 */
struct page {
	int row; /* of the current line; it may be above the screen */
	int column;
	enum style style;
	int above;   /* rows up to this one stay as they are */
	bool hidden; /* nothing is drawn: the page is only measured */
};

void page_line(struct page *page, enum style style); /* start the next line */
void page_end(struct page *page); /* fill the rest of it with blanks in its style */
void page_text(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_shown(struct page *page, const char *raw,
		int width);             /* escaped, and cut or padded to width */
int page_left(const struct page *page); /* columns left to the edge */

/*
 * Draw of() of the latest readings as that many columns of bars, oldest first, on a scale from 0 to
 * highest (0: the highest value drawn). Readings with refusals are emphasized.
 */
void page_bars(struct page *page, const struct past *past, double (*of)(const struct point *point),
	       double highest, int columns, bool unicode);

#endif
