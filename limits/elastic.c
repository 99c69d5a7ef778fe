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
 * Evidence. A call's latency belongs to the number in flight that it found, whatever happened
 * since; so samples are gathered by when they were admitted, in epochs of about a limit of calls.
 * An epoch is looked at when the next one is full: by then most of its calls have ended, the slow
 * ones too. Latency is taken by its cube root, which tames long tails nearly as the logarithm
 * does, and costs less of what there is to learn. With sums around a mean over an epoch, and of
 * the epochs' means around a slow mean,
 *
 *     score = (1 - target) Sxx - Sxy = (e - target) Sxx,    x = ln n, y = ln R
 *
 * is worth as much as the noise of latency, sigma^2, allows: its deviation is sigma sqrt(Sxx).
 * Where the means of epochs scatter by more than samples do, as in a long queue, it counts less.
 *
 * Step. What is known of the knee is its logarithm k and a variance p, as in a Kalman filter. If e
 * falls across the knee by `steep` for each unit of ln n,
 *
 *     k += p steep score / (steep^2 p Sxx + sigma^2),    p *= sigma^2 / (steep^2 p Sxx + sigma^2)
 *
 * so the limit strides while little is known, and takes small steps later. p grows again when e
 * is clear of the target, and is as at first when the level of latency moves as no slope explains:
 * then all is forgotten but k.
 *
 * Probes. In lasting overload n is always at the limit, and would teach nothing. So now and then,
 * in every epoch while p is large, the limit goes up or down by the part `swing`, by turns. What
 * a probe costs grows with its height, what it shows with its square: so few bold ones.
 *
 * Rules on top, each in a function of its own:
 *   - it begins by doubling, until twice in a row more calls did not pay (rush);
 *   - a limit that few calls reach costs nothing, so it gets room for bunches of calls (room);
 *   - limiters that share a callee all see e near 1, as each moves but a part of the queue. When
 *     they grow together it does not pay: what has grown since the last place that did sinks (pay);
 *   - slots that are held by what is no sample, or takes far longer than most, come on top of the
 *     limit: n is of calls alone (look_for_held);
 *   - when calls time out, or nearly all are dropped, it falls, and comes back at once (losses).
 *
 * What it cannot do:
 *   - hold its own growth against that of others who came later (docs/elastic.md);
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

#include "common.h"

/* Samples that an epoch has at least, and while it doubles, and of use at all. */
#define EPOCH_LEAST 16
#define EPOCH_RUSH  10
#define EPOCH_NONE  4

/* How steeply e falls across the knee: as wide as it is unknown, within these. */
#define STEEP_LEAST 1.2
#define STEEP_MOST  4

/* Variance of ln knee: at most. */
#define P_MOST 0.4

/* What is left of the sums over epochs after another. */
#define KEEP 0.9

/* Weights of a new epoch: in the slow means, in their scatter, in the noise of samples. */
#define SLOW    0.1
#define SCATTER 0.1
#define NOISE   0.2

/* Part of an epoch's calls that reach the limit: below, it costs nothing; above, it counts. */
#define RARELY 0.01
#define OFTEN  0.05

/* A level of latency moved: by so much at least, and by so many deviations, squared. Slopes that
 * are no surprise go from 0 to this. */
#define SHIFT        0.25
#define SHIFT_SURE   16
#define SLOPE_MOST   1.5
#define LEVEL_EPOCHS 8

/* So far is e from target, less so many deviations, that p should grow, and by what. */
#define CLEAR       0.2
#define CLEAR_SURE  1.7
#define CLEAR_GROWS 1.5

/* While it doubles: ln 2, deviations that say stop, how many doublings go back then, and the least
 * change of ln n that shows by itself whether it paid; more deviations for a single epoch. */
#define DOUBLING  0.7
#define RUSH_SURE 1.8
#define RUSH_BACK 1.5
#define RUSH_FROM 0.3
#define RUSH_ONE  1.2

/* Growth that must pay: from so much on, short of it by so much, and what is taken back. */
#define PAY_FROM  0.1
#define PAY_SHORT 0.05
#define PAY_BACK  0.01

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

/* Small swings between probes, and the part of epochs with a probe: at least, and for each p. */
#define SWING_SMALL  0.03
#define PROBES_LEAST 0.05
#define PROBES_MORE  10

/* Held slots are counted so many latencies after a mark, and samples: at least, and for each call
 * in flight beside them. Marks at a time; weights of a new count, and of a new latency. */
#define HELD_LATENCIES 4
#define HELD_SEEN      16
#define HELD_SEEN_EACH 2
#define HELD_MARKS     4
#define HELD_WEIGHT    0.3
#define HELD_LATENCY   0.05

/* Parts of what is in flight: from so much on it counts that it is held, until so much, and slots
 * at least. So calls that are merely slow do not. */
#define HELD_FROM  0.6
#define HELD_UNTIL 0.4
#define HELD_LEAST 8

/* A moment, and what has become since of those who were in flight. */
struct mark {
	double at;       /* nanoseconds; 0: it is not set */
	double inflight; /* then */
	double ended;    /* of these, as samples, cancelled or failed */
	double seen;     /* samples, until then */
};

/* Slots that are held by others than calls whose latency counts. */
struct holding {
	struct mark mark[HELD_MARKS];
	uint32_t oldest;
	double latest;  /* when the last mark was set */
	double seen;    /* samples */
	double latency; /* smoothed */
	double counted; /* smoothed */
	double held;    /* whole; 0: too few to matter */
};

/* Calls admitted within some time. */
struct epoch {
	double start;                  /* nanoseconds */
	double knee;                   /* ln, as it was held then */
	double limit;                  /* in force */
	double calls, lost, timed_out; /* with a latency or without */
	double reached;                /* that found the limit reached */
	double n, x, y, xx, xy, yy;    /* sums over those with a latency: x = ln n, y = cbrt R */
};

/* What an epoch comes to: means, sums of squares around them, and variance around the line. */
struct line {
	double n, x, y, xx, xy, variance;
};

struct elastic {
	double limit;                 /* answered last */
	double k, p;                  /* ln knee, and the variance of that */
	double sigma2;                /* variance of samples' y around a line */
	double scatter;               /* variance of epochs' y */
	double x, y;                  /* slow means */
	double last_x, last_y;        /* of the last epoch */
	double xx, xy;                /* sums over epochs, around the slow means */
	double level_x, level_y;      /* means over some epochs, to see a shift by */
	double level_n;               /* samples in them; 0: none yet */
	double place_x, place_y;      /* where growth paid last */
	double reached, reached_mean; /* part of calls: in an epoch, in the long run */
	double before;                /* ln knee before losses; 0: there are none */
	double elasticity;            /* of the last epoch */
	double arm, probe;            /* 1 or -1: direction of the swing, and of the last probe */
	double carry;                 /* fraction of a call that the limits so far lack */
	double strikes;               /* times in a row that doubling did not pay */
	uint32_t rush;                /* it doubles */
	struct epoch now, last;
	struct holding holding;
	double initial, min, max, target, p_least, swing;
};

static const char *elastic_check(const void *config)
{
	const struct weir_elastic_config *c = config;

	return c->min > c->max ? "min is above max" : NULL;
}

static double elastic_init(void *state, const void *config, double random)
{
	const struct weir_elastic_config *c = config;
	struct elastic *s = state;

	s->min = c->min;
	s->max = c->max;
	s->initial = clamp(c->initial, s->min, s->max);
	s->target = c->target;
	s->p_least = c->precision * c->precision;
	s->swing = c->swing;
	s->limit = s->initial;
	s->k = log(s->initial);
	s->p = P_MOST;
	s->sigma2 = 1;
	s->reached_mean = 0.5;
	s->arm = random < 0.5 ? 1 : -1;
	s->rush = true;
	s->now.limit = s->limit;
	s->now.knee = s->k;
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
	const double noise = s->sigma2 * (1 / l->n + 1 / s->level_n);

	return s->level_n > 0 && fabs(shift) > SHIFT && shift * shift > SHIFT_SURE * noise;
}

static void forget(struct elastic *s, const struct line *l)
{
	s->p = P_MOST;
	s->sigma2 = fmin(s->sigma2, l->variance);
	s->xx = s->xy = 0;
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
	s->level_x = s->x = s->last_x = s->place_x = l->x;
	s->level_y = s->y = s->last_y = s->place_y = l->y;
	s->level_n = l->n;
}

struct evidence {
	double score, info;
	double sure; /* score, in deviations */
	double run;  /* the same of the last epochs' means */
	double last; /* the same of this epoch's after the one before; 0: n was as then */
};

/* What an epoch says, by its samples and by how its means differ from the slow ones. */
static struct evidence weigh(struct elastic *s, const struct line *l)
{
	const double slope = 1 - s->target;
	const double dx = l->x - s->last_x, dy = l->y - s->last_y;
	double x = l->x - s->x, y = l->y - s->y, weight = SLOW, off, trust;
	struct evidence v;

	s->sigma2 += NOISE * (l->variance - s->sigma2);
	if (!s->rush)
		weight += (1 - SLOW) * fmin(1, 4 * SLOW * x * x); /* a far place is another */
	s->last_x = l->x;
	s->last_y = l->y;
	s->x += weight * x;
	s->y += weight * y;
	x *= 1 - weight;
	y *= 1 - weight;
	s->xx = KEEP * s->xx + l->n * x * x;
	s->xy = KEEP * s->xy + l->n * x * y;

	off = surprise(x, y);
	s->scatter += SCATTER * (off * off - s->scatter);
	trust = fmin(1, s->sigma2 / l->n / (s->scatter + 1e-9));

	v.last = 0;
	if (fabs(dx) > RUSH_FROM)
		v.last = (slope * dx * dx - dx * dy) / sqrt(2 * s->sigma2 / l->n * dx * dx);
	v.score = trust * (slope * l->xx - l->xy + l->n * (slope * x * x - x * y));
	v.info = trust * (l->xx + l->n * x * x);
	v.sure = v.score / sqrt(s->sigma2 * v.info + 1e-12);
	v.run = (slope * s->xx - s->xy) / sqrt(s->sigma2 * s->xx + 1e-9);
	return v;
}

/* How much it counts that the limit was reached: not at all, 0, to fully, 1. */
static double binding(const struct elastic *s)
{
	return clamp((s->reached - RARELY) / (OFTEN - RARELY), 0, 1);
}

static double steepness(const struct elastic *s)
{
	return clamp(1 / sqrt(s->p), STEEP_LEAST, STEEP_MOST);
}

/* The filter's step. Epochs overlap with its effect, so it is bounded from where the epoch was. */
static double stride(const struct elastic *s, const struct epoch *e, const struct evidence *v)
{
	const double steep = steepness(s);
	const double step = s->p * steep * v->score / (steep * steep * s->p * v->info + s->sigma2);
	const double since = s->k - e->knee;

	if (step <= 0)
		return fmax(step * binding(s), fmin(0, -DOUBLING / steep - since));
	return s->reached > 0 ? fmin(step, fmax(0, (1 - s->target) / steep - since)) : 0;
}

/* Doubling, as long as it pays; at its end, back to where it did. */
static double rush(struct elastic *s, const struct epoch *e, const struct evidence *v)
{
	const double floor = log(s->initial);
	const double worst = fmin(fmin(v->last, v->sure) + RUSH_ONE, v->run);

	if (worst >= -RUSH_SURE) {
		if (v->sure < 0)
			return 0;
		if (v->last > 0)
			s->strikes = 0;
		return s->reached > 2 * OFTEN ? fmax(0, e->knee + DOUBLING - s->k) : 0;
	}
	s->strikes += 1;
	if (s->strikes < 2)
		return 0;
	s->rush = false;
	s->p = P_MOST;
	return fmin(0, fmax(e->knee - RUSH_BACK * DOUBLING, floor) - s->k);
}

/* Room for bunches: a limit that some calls reach, but few, goes up. */
static double room(const struct elastic *s, double step)
{
	if (s->reached > 0 && s->reached_mean > RARELY && s->reached_mean < OFTEN)
		return fmax(step, fmin(0.1, 1 / s->limit));
	return step;
}

/* Growth since the last place where it paid, if it did not, is taken back bit by bit. What
 * is in flight of itself, because calls take longer, is nothing that the limit brought about. */
static double pay(struct elastic *s, const struct line *l, double step)
{
	const double x = s->x - s->place_x, y = s->y - s->place_y;
	const double lacks = y - (1 - s->target) * x;
	const double noise = sqrt(s->sigma2 / l->n * SLOW);
	const bool used = s->reached_mean > OFTEN;
	const double weight = x < 0 ? PLACE_BELOW : lacks < 0 || !used ? PLACE_PAYS : PLACE_ELSE;

	s->place_x += weight * x;
	s->place_y += weight * y;
	if (s->rush || x <= PAY_FROM || lacks <= PAY_SHORT + noise / 2)
		return step;
	return fmin(step, -PAY_BACK);
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

/* How well the knee is known after a step on this evidence. */
static void learn(struct elastic *s, const struct evidence *v)
{
	const double steep = steepness(s);
	const double clear = (fabs(v->score) - CLEAR_SURE * sqrt(s->sigma2 * v->info)) /
			     (v->info + 1e-9);

	if (binding(s) == 0)
		return;
	if (clear > CLEAR)
		s->p *= CLEAR_GROWS;
	else
		s->p *= s->sigma2 / (s->sigma2 + binding(s) * steep * steep * s->p * v->info);
	s->p = clamp(s->p, s->p_least, fmax(P_MOST, s->p_least));
}

static void conclude(struct elastic *s)
{
	const struct epoch *e = &s->last;
	struct evidence v;
	struct line l;
	bool first;
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
	first = s->level_n == 0;
	if (first)
		begin(s, &l);
	else
		follow_level(s, &l);
	if (first && !s->rush)
		return;

	s->elasticity = l.xx > 1e-9 ? 1 - l.xy / l.xx : 0;
	v = weigh(s, &l);
	step = s->rush ? rush(s, e, &v) : stride(s, e, &v);
	step = pay(s, &l, room(s, step));
	step = losses(s, e, step);
	learn(s, &v);
	s->k = clamp(s->k + step, log(s->min), log(s->max));
}

/* The height of the swing in the epoch that begins. */
static double swing(struct elastic *s, double random)
{
	s->arm = -s->arm;
	if (s->reached <= 4 * OFTEN)
		return 0; /* n varies by itself */
	if (s->rush || random >= clamp(PROBES_MORE * s->p, PROBES_LEAST, 1))
		return SWING_SMALL;
	s->arm = s->probe = s->probe > 0 ? -1 : 1;
	return s->swing;
}

/* The limit for the epoch that begins. Fractions of a call are given by turns. */
static void set_limit(struct elastic *s, double height)
{
	const double knee = exp(s->k);
	double limit = exp(s->k + s->arm * height);

	if (height > 0 && s->arm > 0)
		limit = fmax(limit, floor(knee) + 1);
	if (height > 0 && s->arm < 0)
		limit = fmin(limit, ceil(knee) - 1);
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

/* Who was in flight at the mark and is a call like others has ended by now. */
static void count_held(struct holding *h, const struct mark *m)
{
	const double part = h->held > 0 ? HELD_UNTIL : HELD_FROM;

	h->counted += HELD_WEIGHT * (fmax(0, m->inflight - m->ended) - h->counted);
	h->held = h->counted > fmax(HELD_LEAST, part * m->inflight) ? floor(h->counted) : 0;
}

/* The mark has been set long enough, or never; or the clock went back. */
static bool is_over(const struct holding *h, const struct mark *m, double now)
{
	if (m->at <= 0 || m->at > now)
		return true;
	return now - m->at > HELD_LATENCIES * h->latency &&
	       h->seen - m->seen >= fmax(HELD_SEEN, HELD_SEEN_EACH * (m->inflight - h->held));
}

/*
 * Samples that come together count as ended if one of them may have been in flight at the mark:
 * it is better to find too few slots held than too many. So windows of time find none. Streams
 * that end all at once are missed at once.
 */
static void look_for_held(struct holding *h, const struct weir_window *w)
{
	const double now = (double)w->end;
	const double began = (w->count == 1 ? now : (double)w->start) - w->rtt_max;
	const double others = (double)w->cancelled + w->failed;
	struct mark *oldest = &h->mark[h->oldest % HELD_MARKS];

	if (has_latency(w))
		h->latency += (h->latency > 0 ? HELD_LATENCY : 1) * (w->rtt - h->latency);
	h->counted = fmin(h->counted, w->inflight_now);
	h->held = fmin(h->held, w->inflight_now);
	h->seen += w->count;
	for (int i = 0; i < HELD_MARKS; i++)
		h->mark[i].ended += others + (began < h->mark[i].at ? w->count : 0);
	if (fabs(now - h->latest) * HELD_MARKS < h->latency * HELD_LATENCIES ||
	    !is_over(h, oldest, now))
		return;
	if (oldest->at > 0 && oldest->at <= now)
		count_held(h, oldest);
	*oldest = (struct mark){.at = now, .inflight = w->inflight_now, .seen = h->seen};
	h->oldest++;
	h->latest = now;
}

/* Of calls; those that are held come on top. */
static void learn_from(struct elastic *s, const struct weir_window *w)
{
	struct epoch *e = epoch_of(s, w);

	if (e != NULL)
		add(e, w, w->inflight_max - s->holding.held);
	if (s->now.calls < fmax(s->rush ? EPOCH_RUSH : EPOCH_LEAST, s->limit))
		return;

	conclude(s);
	set_limit(s, swing(s, w->random));
	s->last = s->now;
	s->now = (struct epoch){.start = (double)w->end, .knee = s->k, .limit = s->limit};
}

/* What was a limit of all is one of calls, or the other way round: the sum stays, within bounds. */
static void move_by(struct elastic *s, double slots, double now)
{
	s->k = log(clamp(exp(s->k) + slots, fmax(s->min, fmin(s->initial, s->max)), s->max));
	s->limit = clamp(floor(exp(s->k)), s->min, s->max);
	s->level_n = 0;
	s->last = s->now = (struct epoch){.start = now, .knee = s->k, .limit = s->limit};
}

static double elastic_update(void *state, const struct weir_window *w)
{
	struct elastic *s = state;
	const double before = s->holding.held;

	look_for_held(&s->holding, w);
	if ((before > 0) != (s->holding.held > 0))
		move_by(s, before - s->holding.held, (double)w->end);
	learn_from(s, w);
	return s->limit + s->holding.held;
}

static const char *const elastic_numbers[] = {"estimate", "deviation", "elasticity", "noise",
					      "reached",  "held",      NULL};

static void elastic_observe(const void *state, double *values)
{
	const struct elastic *s = state;

	values[0] = exp(s->k);
	values[1] = sqrt(s->p);
	values[2] = s->elasticity;
	values[3] = sqrt(s->sigma2);
	values[4] = s->reached;
	values[5] = s->holding.held;
}

#define OFFSET(field) offsetof(struct weir_elastic_config, field)

static const struct weir_param elastic_params[] = {
	{"initial", WEIR_PARAM_U32, OFFSET(initial), 1, LIMIT_TOP, "4", "limit at first"},
	{"min", WEIR_PARAM_U32, OFFSET(min), 1, LIMIT_TOP, "1", "lowest limit"},
	{"max", WEIR_PARAM_U32, OFFSET(max), 1, LIMIT_TOP, "100000", "highest limit"},
	{"target", WEIR_PARAM_DOUBLE, OFFSET(target), 0.05, 0.9, "0.4",
	 "percent of throughput that one percent more in flight must bring"},
	{"swing", WEIR_PARAM_DOUBLE, OFFSET(swing), 0.05, 1, "0.35",
	 "part of the limit that a probe moves it by"},
	{"precision", WEIR_PARAM_DOUBLE, OFFSET(precision), 0.005, 0.5, "0.08",
	 "part of the limit to which it is known at best: lower is steadier and slower"},
};

_Static_assert(sizeof(struct elastic) <= WEIR_LIMIT_STATE_MAX, "the state fits");

static const struct weir_sampling elastic_sampling = {.windowing = WEIR_WINDOW_SAMPLE};

const struct weir_limit_ops weir_elastic = {
	.size = sizeof(struct weir_limit_ops),
	.flags = WEIR_LIMIT_DETACHED | WEIR_LIMIT_NOW,
	.name = "elastic",
	.about = "Grows while that brings throughput: for callees that change, and long overload.",
	.version = 2,
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
