/*
 * page.h - lines on the screen, and what is written on them.
 */
#ifndef PAGE_H
#define PAGE_H

#include "limiters.h"

#include <stdbool.h>

/* Styles of what is written: they add to what is said, and say nothing by themselves. */
enum style {
	PLAIN,
	BOLD,
	DIM,
	CHOSEN, /* under the cursor */
	HEADER,
	ALARM, /* somebody is being refused */
};

/*
 * Lines between the first and the last row of the screen, which belong to the title and to keys.
 * What is above the first that is shown, below the last or right of the edge is left out.
 */
struct page {
	int row; /* of the present line; it may lie above the screen */
	int column;
	enum style style;
};

void page_line(struct page *page, enum style style); /* begin the next line */
void page_end(struct page *page);                    /* end it: the rest is blank, in its style */
void page_text(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_shown(struct page *page, const char *raw, int width); /* made safe, cut and filled */
int page_left(const struct page *page);                         /* columns to the edge */

/*
 * So many columns of bars: what of() says of the points of the last PAST readings, from old to new.
 * highest 0: the highest of them. Those with refusals stand out.
 */
void page_bars(struct page *page, const struct past *past, double (*of)(const struct point *point),
	       double highest, int columns, bool unicode);

#endif
