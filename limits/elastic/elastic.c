/*
 * Elastic: grow while more calls in flight bring more throughput, and no further.
 *
 * With n calls in flight, throughput X(n) and latency R(n), Little's law says n = X R. So the
 * elasticity of the throughput,
 *
 *     e = d ln X / d ln n = 1 - d ln R / d ln n,
 *
 * is seen in how latency goes with the number in flight: near 1, more calls bring more; near 0 they
 * only queue; below 0 they destroy throughput. The limit is where e falls to target, the knee. It
 * takes calls of the same moment to see it, not a latency of better days: there is no baseline to
 * be learned from a queue under lasting overload, or to be wrong after a change of the work.
 *
 * Epochs. A call's latency belongs to the number in flight that it found, whatever happened
 * since; so samples are gathered by when they were admitted, in epochs of about a limit of calls.
 * An epoch is looked at when the next one is full: by then most of its calls have ended, the slow
 * ones too. Latency is taken by its cube root, which tames long tails nearly as the logarithm
 * does, and costs less of what there is to learn.
 *
 * Evidence. Each epoch shows the slope of y = ln R over x = ln n twice: among its samples, and by
 * where its means lie from slow means of earlier ones. The variance of a slope is that of
 * samples over the sum of squares of x; where the means of epochs scatter by more than samples
 * do, as in a long queue, it is more.
 *
 * Belief. Where the knee may be is a probability for each step of ln n (belief.h). A slope makes
 * knees likely that would show it: around 0 says that the knee is above x, around 1 below. The
 * limit goes where the knee is below with probability LEAN, in bounded strides: what is refused is
 * lost, and what waits is only late, so a little above the middle. A little of the belief goes
 * anywhere in each epoch, and more when the level of latency moves as no slope explains: so it is
 * never too sure to learn anew.
 *
 * Swings. In lasting overload n is always at the limit, and would teach nothing. So there the limit
 * goes up and down a little, and now and then, more often while little is known, by the part BOLD.
 * What a swing costs grows with its height, what it shows with its square: so few bold ones.
 *
 * Company. Limiters that share a callee each see e near 1, as each moves but a part of the queue.
 * They swing at the same times (swings.h), and what that shows is true of all together. A belief
 * of its own is judged by it alone, and the limit stays below where that one is rather sure, CAP,
 * that there is too much. It is loosened more, as it hears but once in a dozen of latencies.
 *
 * Rules on top, each in a function of its own:
 *   - a limit that is not needed to hold back lasting overload gets room for bunches (make_room);
 *   - when limiters grow together and it does not pay, what has grown since the last place that did
 *     sinks (pay);
 *   - slots that are held by what is no sample, or takes far longer than most, come on top of the
 *     limit: n is of calls alone (holding.h);
 *   - when calls time out, or nearly all are dropped, it falls, and comes back at once (losses).
 *
 * What it cannot do:
 *   - hold others of its kind down fast enough where many come at once (docs/elastic.md);
 *   - see a knee that moves up while it holds the limit below: it has to be probed for, which takes
 *     some hundred calls, more where calls differ much;
 *   - notice a callee that answers nothing: without samples nothing is learned, the limit holds.
 *
 * Outcomes: a timed out call counts with its latency, which is a lower bound. A dropped one does
 * not: it says nothing of latency. Cancelled, failed and ignored calls are not seen. Detached ones
 * come on top of the limit, and are not among what a call finds in flight.
 *
 * Related work: J. Little, 1961; L. Kleinrock, "Power and deterministic rules of thumb for
 * probabilistic problems in computer communications", 1979 (power X/R is greatest at e = 1/2);
 * K. Ariyur, M. Krstic, "Real-Time Optimization by Extremum-Seeking Control", 2003. What was tried,
 * and what each rule is worth, is in docs/elastic.md.
 */

#include <stddef.h>

#include <weir/limits.h>

#include "posterior.h"
#include "limits/common.h"
#include "long_lived.h"
#include "dither.h"

/* Samples that an epoch has at least, also while hardly anything is known, and of use at all; after
 * so many latencies it needs no more than these. */
#define EPOCH_LEAST 8
#define EPOCH_WIDE  4
#define EPOCH_NONE  4
#define EPOCH_LATE  8

/* How likely the knee is to be below the limit: its own, and at most that of all together. */
#define LEAN 0.6
#define CAP  0.75

/* Part of the belief that goes anywhere in an epoch, and what of it where the limit is not reached;
 * of the belief about all together; and of both when latency has shifted. */
#define LOOSEN   0.0003
#define AT_REST  0.1
#define TOGETHER 0.003
#define FORGET   0.01

/* Strides at most, from where the epoch was: by a factor of e; of 4 while little is known. */
#define RISE      1.0
#define RISE_WIDE 1.4
#define FALL      1.0

/* Weights of a new epoch: in the slow means, in their scatter, in the noise of samples, in how
 * busy the limit is. */
#define SLOW    0.1
#define SCATTER 0.1
#define NOISE   0.2
#define BUSY    0.3

/* Part of an epoch's calls that reach the limit: below, it costs nothing; above, it counts. */
#define RARELY 0.01
#define OFTEN  0.05

/* Room: where no more than so much of the limit is busy in the mean, so much at most (ln), and what
 * is left of it in an epoch of overload. A queue whose load is 1 fills half of the room there is. */
#define EMPTY     0.45
#define ROOM_MOST 1.5
#define ROOM_KEPT 0.5

/* A level of latency moved: by so much at least, and by so many deviations, squared. Slopes that
 * are no surprise go from 0 to this. */
#define SHIFT        0.25
#define SHIFT_SURE   16
#define SLOPE_MOST   1.5
#define LEVEL_EPOCHS 8

/* Growth that must pay: from so much on, short of it by so much and a deviation, and what is taken
 * back. If latency is still as much above (ln) when all of it is, growth was not why. */
#define PAY_FROM  0.1
#define PAY_SHORT 0.05
#define PAY_BACK  0.01
#define PAY_STALE 1.4

/* Weight of a new place for the last that paid: below it, if it pays, and if not. */
#define PLACE_BELOW 0.2
#define PLACE_PAYS  0.1
#define PLACE_ELSE  0.001

/* Part of the calls that time out, are lost in all, and are none; what it falls by, to what. */
#define TIMED_OUT  0.2
#define LOST       0.7
#define CALM       0.05
#define LOSS_STEP  0.3
#define LOSS_FLOOR 4

/* Heights of bold swings, and of those between; the part of pairs that are bold: at least, and for
 * each unit of variance of the knee, of which so much counts. */
#define BOLD          0.3
#define SMALL         0.08
#define BOLD_LEAST    0.05
#define BOLD_MORE     3
#define VARIANCE_MOST 0.4

/* Calls admitted within some time. */
struct epoch {
	double start, late;  /* nanoseconds; late: when it has lasted far longer than calls do */
	double knee;         /* ln, as it was held then */
	double limit;        /* in force */
	struct dither swing; /* .pair 0: none */
	double calls, lost, timed_out; /* with a latency or without */
	double reached;                /* that found the limit reached */
	double n, x, y, xx, xy, yy;    /* sums over those with a latency: x = ln n, y = cbrt R */
};

/* What an epoch comes to: means, sums of squares around them, and variance around the line. */
struct line {
	double n, x, y, xx, xy, variance;
};

struct elastic {
	struct posterior belief, together; /* of its own evidence, and of swings alone */
	struct arms arms;
	struct holding holding;
	struct epoch now, last;
	double limit;                 /* of calls, answered last */
	double k;                     /* ln knee, as it is held */
	double own, cap;              /* where the beliefs have it */
	double spread;                /* its deviation, by its own belief */
	double room;                  /* ln of the limit over it, but for swings */
	double sigma2;                /* variance of samples' y around a line */
	double scatter;               /* variance of epochs' y */
	double x, y;                  /* slow means */
	double level_x, level_y;      /* means over some epochs, to see a shift by */
	double level_n;               /* samples in them; 0: none yet */
	double place_x, place_y;      /* where growth paid last */
	double place_n;               /* samples that it is known by */
	double reached, reached_mean; /* part of calls: in an epoch, in the long run */
	double busy, busy_since;      /* sum of latencies, since when; nanoseconds */
	double load;                  /* part of the limit that was busy */
	double before;                /* ln knee before losses; 0: there are none */
	double elasticity;            /* of the last epoch */
	double carry;                 /* fraction of a call that the limits so far lack */
	uint32_t wide;                /* the knee can be nearly anywhere */
	uint32_t sinks;               /* growth that did not pay is being taken back */
	double initial, min, max, target;
};

static const char *elastic_check(const void *config)
{
	const struct weir_elastic_config *c = config;

	return c->min > c->max ? "min is above max" : NULL;
}

static struct epoch epoch_from(const struct elastic *s, double now)
{
	return (struct epoch){
		.start = now,
		.late = s->level_n > 0 ? now + EPOCH_LATE * exp(s->y) : INFINITY,
		.knee = s->k,
		.limit = s->limit,
	};
}

/* Where the knee is thought to be. */
static void read_beliefs(struct elastic *s)
{
	const double high = posterior_quantile(&s->belief, 0.84);

	s->own = posterior_quantile(&s->belief, LEAN);
	s->cap = posterior_quantile(&s->together, CAP);
	s->spread = (high - posterior_quantile(&s->belief, 0.16)) / 2;
}

static double elastic_init(void *state, const void *config, double random)
{
	const struct weir_elastic_config *c = config;
	struct elastic *s = state;

	s->min = c->min;
	s->max = c->max;
	s->initial = clamp(c->initial, s->min, s->max);
	s->target = c->target;
	s->limit = s->initial;
	s->k = log(s->initial);
	s->sigma2 = 1;
	s->reached_mean = 0.5;
	s->wide = true;
	s->now = epoch_from(s, 0);
	posterior_init(&s->belief, log(s->min), log(s->max), s->k, 1 - s->target);
	s->together = s->belief;
	read_beliefs(s);
	(void)random;
	return s->limit;
}

/* The line through an epoch's samples, x as it is and y as ln R. */
static struct line line_of(const struct epoch *e)
{
	const double x = e->x / e->n, y = e->y / e->n;
	const double scale = 3 / y; /* d ln R = 3 d cbrt R / cbrt R */
	const double xx = fmax(0, e->xx - e->n * x * x);
	const double xy = (e->xy - e->n * x * y) * scale;
	const double yy = fmax(0, e->yy - e->n * y * y) * scale * scale;
	const double explained = xx > 1e-9 ? xy * xy / xx : 0;

	return (struct line){
		.n = e->n,
		.x = x,
		.y = 3 * log(y),
		.xx = xx,
		.xy = xy,
		.variance = fmax(0, yy - explained) / (e->n - 2) + 1e-4,
	};
}

/* What of a change of y no slope explains, after that change of x. */
static double surprise(double x, double y)
{
	return y - clamp(y, fmin(0, SLOPE_MOST * x), fmax(0, SLOPE_MOST * x));
}

/* Latency is not where any slope would have it after what n did: something else has changed. */
static bool shifted(const struct elastic *s, const struct line *l)
{
	const double shift = surprise(l->x - s->level_x, l->y - s->level_y);
	const double noise = s->sigma2 * (1 / l->n + 1 / s->level_n) + s->scatter;

	return s->level_n > 0 && fabs(shift) > SHIFT && shift * shift > SHIFT_SURE * noise;
}

static void loosen(struct elastic *s, double part, double together)
{
	posterior_loosen(&s->belief, s->k, part);
	posterior_loosen(&s->together, s->k, together);
}

static void forget(struct elastic *s, const struct line *l)
{
	loosen(s, FORGET, FORGET);
	read_beliefs(s);
	s->sigma2 = fmin(s->sigma2, l->variance);
	s->room = 0;
	s->level_n = 0;
}

static void follow_level(struct elastic *s, const struct line *l)
{
	const double weight = l->n / (s->level_n + l->n);

	s->level_x += weight * (l->x - s->level_x);
	s->level_y += weight * (l->y - s->level_y);
	s->level_n = fmin(s->level_n + l->n, LEVEL_EPOCHS * l->n);
}

/* The first epoch since all was forgotten. */
static void begin(struct elastic *s, const struct line *l)
{
	s->level_x = s->x = s->place_x = l->x;
	s->level_y = s->y = s->place_y = l->y;
	s->level_n = s->place_n = l->n;
}

static struct evidence slope_of(double x, double xx, double xy, double variance)
{
	return (struct evidence){
		.x = x,
		.slope = xx > 1e-9 ? xy / xx : 0,
		.variance = variance / (xx + 1e-9),
	};
}

/* What an epoch says, by its samples and by how its means differ from the slow ones, and what the
 * pair of swings says that it is the first after. False if that is nothing. */
static bool weigh(struct elastic *s, const struct epoch *e, const struct line *l)
{
	const double dx = l->x - s->x, dy = l->y - s->y;
	const double far = fmin(1, 4 * SLOW * dx * dx); /* a far place is another */
	const double weight = SLOW + (1 - SLOW) * far;
	const double x = dx * (1 - weight), y = dy * (1 - weight), off = surprise(x, y);
	struct evidence within, between, swung;
	struct contrast c;
	double variance;
	bool news;

	s->sigma2 += NOISE * (l->variance - s->sigma2);
	s->scatter += SCATTER * (off * off - s->scatter);
	s->x += weight * dx;
	s->y += weight * dy;

	variance = fmax(s->sigma2, l->n * s->scatter);
	within = slope_of(l->x, l->xx, l->xy, variance);
	between = slope_of(l->x - x / 2, l->n * x * x, l->n * x * y, variance);
	news = posterior_judge(&s->belief, &within);
	news = posterior_judge(&s->belief, &between) || news;
	if (e->swing.pair == 0 || !arms_add(&s->arms, &e->swing, l->n, l->x, l->y, &c))
		return news;
	swung = slope_of(c.x, c.xx, c.xy, variance);
	return posterior_judge(&s->together, &swung) || news;
}

/* How much it counts that the limit was reached: not at all, 0, to fully, 1. */
static double binding(const struct elastic *s)
{
	return clamp((s->reached - RARELY) / (OFTEN - RARELY), 0, 1);
}

/* To where the beliefs say. Epochs overlap with its effect: bounded from where this one was. */
static double stride(const struct elastic *s, const struct epoch *e)
{
	const double step = fmin(s->own, s->cap) - s->k;
	const double since = s->k - e->knee;

	if (step <= 0)
		return fmax(step, fmin(0, -FALL - since));
	return s->reached > 0 ? fmin(step, fmax(0, (s->wide ? RISE_WIDE : RISE) - since)) : 0;
}

/*
 * Room for bunches, where calls reach the limit, but there is no lasting overload: they do so
 * seldom, or more than half of it is empty in the mean.
 */
static void make_room(struct elastic *s)
{
	const bool rare = s->reached_mean < OFTEN, empty = s->load < EMPTY;

	if (s->reached > 0 && (empty || (rare && s->reached_mean > RARELY)))
		s->room = fmin(s->room + fmin(0.1, 1 / s->limit), ROOM_MOST);
	else if (!rare && !empty)
		s->room *= ROOM_KEPT;
}

/* Growth since the last place where it paid, if it did not, is taken back bit by bit. What
 * is in flight of itself, because calls take longer, is nothing that the limit brought about.
 * A place with another latency than it had is one no more: a fault behind came unseen. */
static double pay(struct elastic *s, const struct line *l, double step)
{
	const double x = s->x - s->place_x, y = s->y - s->place_y;
	const double lacks = y - (1 - s->target) * x;
	const double noise = sqrt(s->sigma2 * (SLOW / l->n + 1 / s->place_n));
	const bool used = s->reached_mean > OFTEN;
	const double weight = x < 0 ? PLACE_BELOW : lacks < 0 || !used ? PLACE_PAYS : PLACE_ELSE;

	s->place_x += weight * x;
	s->place_y += weight * y;
	s->place_n = 1 / ((1 - weight) * (1 - weight) / s->place_n + weight * weight * SLOW / l->n);
	if (x > PAY_FROM && lacks > PAY_SHORT + noise) {
		s->sinks = true;
		return fmin(step, -PAY_BACK);
	}
	if (s->sinks && lacks > PAY_STALE + noise) {
		s->place_x = s->x;
		s->place_y = s->y;
		s->place_n = l->n;
	}
	s->sinks = false;
	return step;
}

/* Calls that time out, or are all dropped, say that there is too much, whatever latency says. */
static double losses(struct elastic *s, const struct epoch *e, double step)
{
	if (e->timed_out > TIMED_OUT * e->calls || e->lost > LOST * e->calls) {
		if (s->before == 0)
			s->before = s->k;
		return fmax(fmin(0, e->knee - LOSS_STEP - s->k), fmin(0, log(LOSS_FLOOR) - s->k));
	}
	if (s->before > 0 && e->lost < CALM * e->calls) {
		step = fmax(step, s->before - s->k);
		s->before = 0;
	}
	return step;
}

static void conclude(struct elastic *s)
{
	const struct epoch *e = &s->last;
	struct line l;
	double step;

	if (e->n < EPOCH_NONE) {
		s->k = fmax(log(s->min), s->k + losses(s, e, 0));
		return;
	}
	l = line_of(e);
	s->reached = e->reached / e->n;
	s->reached_mean += fmin(1, e->n / 500) * (s->reached - s->reached_mean);
	if (shifted(s, &l)) {
		forget(s, &l);
		return;
	}
	if (s->level_n == 0)
		begin(s, &l);
	else
		follow_level(s, &l);

	s->elasticity = l.xx > 1e-9 ? 1 - l.xy / l.xx : 0;
	loosen(s, LOOSEN * fmax(AT_REST, binding(s)), TOGETHER * binding(s));
	if (weigh(s, e, &l) || binding(s) > 0)
		read_beliefs(s);
	make_room(s);
	step = losses(s, e, pay(s, &l, stride(s, e)));
	s->k = clamp(s->k + step, log(s->min), log(s->max));
}

/* How much of the limit is busy, by Little's law. */
static void follow_load(struct elastic *s, double now)
{
	const double lasted = now - s->busy_since;

	if (lasted > 0)
		s->load += BUSY * (fmin(1, s->busy / lasted / s->limit) - s->load);
	s->busy_since = now;
	s->busy = 0;
}

/* How the limit swings in the epoch that begins: 0 if n varies by itself. */
static double next_swing(struct elastic *s, weir_time now, struct dither *swing)
{
	const double variance = fmin(s->spread * s->spread, VARIANCE_MOST);

	s->wide = variance >= VARIANCE_MOST;
	*swing = dither_at(now, s->y);
	if (s->reached <= OFTEN)
		return 0;
	return swing->direction *
	       (swing->chance < clamp(BOLD_MORE * variance, BOLD_LEAST, 1) ? BOLD : SMALL);
}

/* The limit for the epoch that begins. Fractions of a call are given by turns. */
static void set_limit(struct elastic *s, double swing)
{
	const double middle = s->k + s->room;
	double limit = exp(middle + swing);

	if (swing > 0)
		limit = fmax(limit, floor(exp(middle)) + 1);
	if (swing < 0)
		limit = fmin(limit, ceil(exp(middle)) - 1);
	limit = clamp(limit, s->min, s->max);
	s->limit = clamp(floor(limit + s->carry), s->min, s->max);
	s->carry = clamp(s->carry + limit - s->limit, 0, 1);
}

/* The epoch that the window's calls were admitted in; NULL: one that is over. */
static struct epoch *epoch_of(struct elastic *s, const struct weir_window *w)
{
	const double admitted = (double)w->end - w->rtt;

	if (admitted >= s->now.start)
		return &s->now;
	if ((double)w->end < s->now.start)
		s->now.start = (double)w->end; /* the clock went back */
	return admitted >= s->last.start ? &s->last : NULL;
}

static void add(struct epoch *e, const struct weir_window *w, double inflight)
{
	const double count = has_latency(w) && w->dropped == 0 ? w->count : 0;
	const double x = log(fmax(1, inflight)), y = cbrt(w->rtt);

	e->calls += fmax(w->count, (double)overloads(w));
	e->lost += (double)overloads(w);
	e->timed_out += w->timed_out;
	if (inflight >= e->limit)
		e->reached += count;
	e->n += count;
	e->x += count * x;
	e->y += count * y;
	e->xx += count * x * x;
	e->xy += count * x * y;
	e->yy += count * y * y;
}

/* It has a limit of calls; fewer do where demand or throughput is small. */
static bool is_full(const struct elastic *s, double now)
{
	const double least = s->wide ? EPOCH_WIDE : EPOCH_LEAST;

	return s->now.calls >= (now > s->now.late ? least : fmax(least, s->limit));
}

/* Of calls; those that are held come on top. */
static void learn_from(struct elastic *s, const struct weir_window *w)
{
	struct epoch *e = epoch_of(s, w);
	struct dither swing;

	s->busy += has_latency(w) ? w->count * w->rtt : 0;
	if (e != NULL)
		add(e, w, w->inflight_max - s->holding.held);
	if (!is_full(s, (double)w->end))
		return;

	follow_load(s, (double)w->end);
	conclude(s);
	set_limit(s, next_swing(s, w->end, &swing));
	s->last = s->now;
	s->now = epoch_from(s, (double)w->end);
	s->now.swing = swing;
}

/* What was a limit of all is one of calls, or the other way round: the sum stays, within bounds. */
static void move_by(struct elastic *s, double slots, double now)
{
	s->k = log(clamp(exp(s->k) + slots, fmax(s->min, fmin(s->initial, s->max)), s->max));
	s->limit = clamp(floor(exp(s->k)), s->min, s->max);
	s->level_n = 0;
	s->last = s->now = epoch_from(s, now);
}

static double elastic_update(void *state, const struct weir_window *w)
{
	struct elastic *s = state;
	const double before = s->holding.held;

	holding_look(&s->holding, w);
	if ((before > 0) != (s->holding.held > 0))
		move_by(s, before - s->holding.held, (double)w->end);
	learn_from(s, w);
	return s->limit + s->holding.held;
}

static const char *const elastic_numbers[] = {
	"estimate", "deviation", "elasticity", "noise", "reached", "load", "room", "held", NULL};

static void elastic_observe(const void *state, double *values)
{
	const struct elastic *s = state;

	values[0] = exp(s->k);
	values[1] = s->spread;
	values[2] = s->elasticity;
	values[3] = sqrt(s->sigma2);
	values[4] = s->reached;
	values[5] = s->load;
	values[6] = exp(s->room);
	values[7] = s->holding.held;
}

#define OFFSET(field) offsetof(struct weir_elastic_config, field)

static const struct weir_param elastic_params[] = {
	{"initial", WEIR_PARAM_U32, OFFSET(initial), 1, LIMIT_TOP, "4", "limit at first"},
	{"min", WEIR_PARAM_U32, OFFSET(min), 1, LIMIT_TOP, "1", "lowest limit"},
	{"max", WEIR_PARAM_U32, OFFSET(max), 1, LIMIT_TOP, "100000", "highest limit"},
	{"target", WEIR_PARAM_DOUBLE, OFFSET(target), 0.05, 0.9, "0.3",
	 "percent of throughput that one percent more in flight must bring"},
};

_Static_assert(sizeof(struct elastic) <= WEIR_LIMIT_STATE_MAX, "the state fits");

static const struct weir_sampling elastic_sampling = {.windowing = WEIR_WINDOW_SAMPLE};

const struct weir_limit_ops weir_elastic = {
	.size = sizeof(struct weir_limit_ops),
	.flags = WEIR_LIMIT_DETACHED | WEIR_LIMIT_NOW | WEIR_LIMIT_IN_PLACE,
	.name = "elastic",
	.about =
		"Grows while that brings throughput, and no further: needs no latency of better days.",
	.version = 4,
	.state_size = sizeof(struct elastic),
	.config_size = sizeof(struct weir_elastic_config),
	.params = elastic_params,
	.param_count = sizeof(elastic_params) / sizeof(elastic_params[0]),
	.check = elastic_check,
	.init = elastic_init,
	.update = elastic_update,
	.numbers = elastic_numbers,
	.observe = elastic_observe,
	.sampling = &elastic_sampling,
};
