/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/shapes.h - shapes that a header may have: a test of the manual's generator.
 *
 *	first(code);
 *
 *	then(code);
 *
 * A paragraph, and a list:
 *
 * - one thing, which goes on
 *   in a second line
 * - another
 *
 * Ownership. The caller's.
 *
 * Thread safety. Any thread may call these.
 */
#ifndef WEIR_SHAPES_H
#define WEIR_SHAPES_H

#ifdef __cplusplus
extern "C" {
#endif

struct weir_elsewhere; /* no page */

#define WEIR_SHAPES_MAX 7 /* shapes at most; a backslash is \ */

enum weir_shape_bare {
	WEIR_SHAPE_BARE,
};

/* Kinds of shape; { and ; in a comment are text. */
enum weir_shape_kind {
	WEIR_SHAPE_ROUND = 1, /* 'round' - a circle */
	WEIR_SHAPE_SQUARE     /* four { corners; */
};

/* A shape of four corners at most, or of any number of sides, which is 2^31 - 1. Or not. */
struct weir_shape {
	enum weir_shape_kind kind;
	/*
	 * Corners.
	 *
	 *	x[0]
	 */
	double x[4], y[4];
	double z[4];
	void (*draw)(const struct weir_shape *self); /* required; this is
						      * on two lines */
	unsigned bits : 3;

	/* In front. */
	int more; /* behind */
	int (*wide)(const struct weir_shape *self, const struct weir_shape *other,
		    unsigned long size);
};

#define weir_shape_init(shape) weir_shape_init_sized((shape), sizeof(*(shape)))
void weir_shape_init_sized(struct weir_shape *shape, unsigned long size);

/*
 * Draw a shape. See weir_shape.kind, D.-M. Chiu, e.g. for what done() is, and when a shape is *not*.
 *
 *	weir_shape_draw(&shape);
 *
 * .leading dots, and 'quotes', are text; see weir_shape_count().
 */
WEIR_API WEIR_MUST_CHECK int weir_shape_draw(const struct weir_shape *shape,
					     void (*done)(void *arg, const struct weir_shape *now,
							  unsigned long left),
					     void *arg);

/* As weir_shape_draw(), from afar. Returns whether it worked, and then: done. */
WEIR_API int weir_shape_draw_at(const struct weir_shape *shape, double distance);
/* Two at once. Returns -ENOENT, or so.
 *
 * Further words.
 */
WEIR_API int weir_shapes_both(const struct weir_shape *one, const struct weir_shape *other);
WEIR_API int weir_shapes_all(const struct weir_shape *first, ...);

/* How many: never less than none. Any thread. */
WEIR_API unsigned weir_shape_count(void);

/* Returns the number of sides. */
WEIR_API unsigned weir_shape_sides(const struct weir_shape *shape);

/* round: a shape. */
struct weir_round_config {
	double radius; /* 1 */
};
WEIR_API extern const struct weir_shape weir_round;

/* Nothing to look into. */
struct weir_shape_box;

/* An array. */
WEIR_API extern const struct weir_shape *const weir_shapes[];

/* Belongs to nothing, and so to the header. */

#define WEIR_SHAPE_BOX (-1.0)

/* Put it where it belongs. */
WEIR_API int weir_shape_put(struct weir_shape_box *box);

/* Flags. */
enum {
	WEIR_SHAPE_THICK = 1u << 0, /* a thick line */
	/* In front. */
	WEIR_SHAPE_THIN = 1u << 1,
};

/* A callback. */
typedef int weir_shape_fn(void *arg);

/*
 * Fold a shape. Round ones cannot be folded.
 * Returns 0 when it is folded, or a negative errno:
 * -EINVAL: it is round. So is
 * its shadow.
 * -EAGAIN: it is being drawn.
 *
 * Other errors are those of weir_shape_draw().
 */
int weir_shape_fold(struct weir_shape *shape);

#ifdef __cplusplus
}
#endif
#endif
