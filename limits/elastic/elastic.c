/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Elastic: grow while more calls in flight bring more throughput, and no further.
 *
 * With n calls in flight, throughput X(n) and latency R(n), Little's law says n = X R. So the
 * elasticity of the throughput,
 *
 *     e = d ln X / d ln n = 1 - d ln R / d ln n,
 *
 * follows from how latency changes with the number in flight. Near 1, more calls bring more
 * throughput; near 0 they only queue; below 0 they reduce throughput. The limit belongs where e
 * falls to target: the knee. Calls of the same moment are enough to see it. No earlier latency is
 * remembered, so there is no baseline that could be learned from a queue under lasting overload, or
 * be wrong after a change of the work.
 *
 * Epochs. A call's latency belongs to the number in flight that the call found, whatever happened
 * since. So samples are gathered by when they were admitted, in epochs of about as many calls as
 * the limit. An epoch is evaluated when the next one is full, or has lasted several latencies: by
 * then most of its calls have ended. The longest may not have. So a latency counts as at most LONG
 * times the mean; a queue shows in the shorter ones as well. Latency enters by its cube root, which
 * tames long tails nearly as well as the logarithm and loses less information. In a queue the mean of
 * cube roots rises more steeply than the mean, for which Little's law holds (queueing.h).
 *
 * Evidence. Each epoch shows twice how y = ln R depends on x = ln n: by the slope among its samples,
 * and by the change from slow means of earlier epochs to its own. The variance of a slope is that of
 * the samples over the sum of squares of x. Where the means of epochs scatter more than their
 * samples explain, as in a long queue, the larger variance is used. After a long stride, n changes
 * during the epoch, and a call's latency depends more on the calls that come after it than on those
 * it found. So the slope among samples is not used then. Calls that share a server take about equally
 * long whatever they found, and would show a flat slope too surely: its variance has a lower bound.
 *
 * Posterior. What is known of the knee is a probability for each step of ln n (posterior.h). A
 * change makes those knees likely that would produce it: no change says that the knee is above x,
 * one as large as that of x, below x. The limit is the median, and moves there in bounded strides. In
 * each epoch a little probability is added everywhere, and more when the level of latency moves in a
 * way that no slope explains, so that the limit can always learn again. Where latency rises and the
 * knee is known, that is added below it alone.
 *
 * Dither. Under lasting overload n is always at the limit, and would show nothing. So there the
 * limit moves up and down a little, and sometimes by the larger height BOLD, more often while
 * little is known. The cost of a probe grows with its height, the information with the square of
 * it: so there are few bold probes, and the others are lower where limits are large, as epochs have
 * many calls there. Small limits rest in some probe pairs, and are rounded up and down in turns
 * instead, which shows whether the limiter has the server to itself (idle.h).
 *
 * Shared backends. Limiters that share a backend each see e near 1, as each moves only a part of
 * the queue. So they dither at the same times (dither.h), and what a probe pair shows is true of
 * all of them together. A second posterior, the joint one, is updated by probe pairs alone, and the
 * limit stays below its quantile CAP. It is loosened more, as it gets evidence only once in a dozen
 * latencies.
 *
 * Rules on top, each in a function of its own:
 *   - a limit that is not needed to hold back lasting overload gets room for bunches, and one that
 *     is gets as much as keeps the server from being idle (make_room, idle.h);
 *   - when limiters grow together and throughput does not, the growth since the reference point,
 *     the last one at which throughput grew, is taken back (reference.h);
 *   - while the limit is not used the knee does not fall, as n follows from latency there (stride);
 *   - when far fewer calls end than in the epoch before, the server may be collapsing, and the limit takes
 *     back what it has risen by since the epoch that it learns from (take_back);
 *   - at the start it rises as well when as many calls as the limit have ended, as an epoch takes long
 *     where few of them are samples (rise_early);
 *   - permits of calls that are no samples, or take far longer than most, come on top of the limit:
 *     n counts ordinary calls alone (long_lived.h);
 *   - when throughput is lost while n grows, the server may have collapsed, and the limit falls, which
 *     shows whether it has (step_down); room does not reach as far again for some time (ceiling.h);
 *   - when calls time out, and those that are served take nearly as long, latency cannot show a longer
 *     queue any more, and the limit falls (cut_off);
 *   - the permit of a call that timed out is held back until another call ends otherwise, as the
 *     server may still work on it; so is that of a cancelled call, where none is served any more
 *     (given_up.h).
 *
 * What it cannot do:
 *   - restrain other limiters of its kind fast enough where many start at once (docs/elastic.md);
 *   - see a knee that moves up while the limit is below it: probes must find it, which takes some
 *     hundred calls, more where calls differ much;
 *   - notice a backend that answers nothing: without samples nothing is learned, the limit stays.
 *
 * Outcomes: the latency of a dropped call says nothing about load; that of one that timed out is a
 * lower bound, and says nothing where those that are served take far less. Cancelled, failed and
 * ignored calls hold permits as others do, so the time that they were in flight counts: in the load,
 * among long-lived calls, and in what a slope means for all calls (others.h). A server may go on with
 * cancelled calls: where the others take far longer than callers wait before they cancel, n counts them
 * as well (count_abandoned). The permits of detached calls come on top of the limit, and are not part of
 * what a call finds in flight.
 *
 * Related work: J. Little, 1961; L. Kleinrock, "Power and deterministic rules of thumb for
 * probabilistic problems in computer communications", 1979 (power X/R is greatest at e = 1/2);
 * K. Ariyur, M. Krstic, "Real-Time Optimization by Extremum-Seeking Control", 2003. What each rule is
 * worth is in docs/elastic.md, and what was tried and left out in docs/elastic-versions.md.
 */

#include <stddef.h>

#include <weir/limits.h>

#include "limits/common.h"
#include "ceiling.h"
#include "constants.h"
#include "dither.h"
#include "epoch.h"
#include "given_up.h"
#include "idle.h"
#include "level.h"
#include "long_lived.h"
#include "means.h"
#include "others.h"
#include "posterior.h"
#include "queueing.h"
#include "reference.h"
#include "use.h"

/*
 * The constants were tuned in the simulator; docs/elastic.md says on which seeds. There, "Constants"
 * shows what half and twice of each is worth: CAP and EMPTY are the most sensitive.
 * Logarithms are natural. A fraction has no unit.
 */

/* Latencies after which an epoch needs no more than these; earlier, too few of its calls ended. */
#define EPOCH_LATE 8
/* The longest latency that counts, over the mean of calls that find as many in flight. */
#define LONG 4

/* Quantile of the joint posterior that the limit stays below: trades goodput for latency. */
#define CAP 0.75

/* Probability that an epoch adds everywhere to the own posterior: the knee moves rarely. */
#define LOOSEN 0.0002
/*
 * The same for the joint posterior, in an epoch of a probe pair. It gets evidence in about one epoch
 * of ten, and where it is out of date, it holds down a limiter that has the server to itself.
 */
#define LOOSEN_JOINT 0.0045
/* Probability added to both when latency has shifted: the knee has probably moved too. */
#define FORGET 0.05

/* Fraction of the time that the knee may be idle; with more, the limit gets room. */
#define IDLE 0.025

/* Mean load of the limit below which it gets room; a queue at load 1 fills half of its room. */
#define EMPTY 0.45

/* Height in ln n of probes that are not bold: 8 %, which costs little; less for limits above 64. */
#define SMALL 0.08
/* Fraction of probe pairs in which a small limit does not move, so that it is rounded in turns. */
#define REST 0.25
/*
 * Bold fraction for each unit of the variance of the knee, in ln n squared. Where all probes are
 * bold, the knee can be nearly anywhere.
 */
#define BOLD_MORE 3

/*
 * Least variance of ln R for the slope within an epoch. Calls that share a server take about equally
 * long whatever each of them found, and would seem to show a slope of 0 with great precision.
 */
#define WITHIN_LEAST 1

struct elastic {
	struct posterior posterior; /* from this limiter's own evidence */
	struct posterior joint;     /* of all limiters that share the backend: from probe pairs */
	struct probe_pair probes;
	struct long_lived long_lived;
	struct given_up given_up;
	struct others others;
	struct idle idle;
	struct ceiling ceiling;
	struct use use;
	struct epoch now, last;
	struct means means;
	struct level level;
	double limit;                 /* the last answer, for ordinary calls */
	double k;                     /* ln knee, as the limit uses it */
	double own, cap;              /* ln knee: median of posterior, quantile CAP of joint */
	double spread;                /* standard deviation of the posterior, in ln n */
	double room;                  /* ln of the limit over the knee, without dither */
	struct reference ref;         /* where throughput last grew with n */
	double reached, reached_mean; /* fraction of calls: in the last epoch, in the long run */
	float each;                   /* calls that its sample stands for */
	float reaching;               /* fraction of the last epochs that reached the limit */
	float elasticity;             /* of the last epoch */
	float carry;                  /* fraction of a call that rounding has held back so far */
	float abandoned;              /* ln of n over those of it in flight: count_abandoned() */
	float rounding;               /* ln of the limit over what it was before it was rounded */
	double target, pause;
	uint32_t initial, min, max;
	uint32_t wide; /* bool: the knee can be nearly anywhere */
};

static const char *elastic_check(const void *config)
{
	const struct weir_elastic_config *c = config;

	return c->min > c->max ? "min is above max" : NULL;
}

/* The knee in calls, as the limit counts them. */
static double knee_calls(const struct elastic *s)
{
	return exp(s->k - (double)s->abandoned);
}

/* The highest knee, in ln n. */
static double highest(const struct elastic *s)
{
	return log(s->max) + (double)s->abandoned;
}

static struct epoch epoch_from(const struct elastic *s, double now)
{
	return (struct epoch){
		.start = now,
		.late = s->level.n > 0 ? now + EPOCH_LATE * s->means.usual : INFINITY,
		.knee = s->k,
		.knee_calls = (float)knee_calls(s),
		.limit = (float)s->limit,
		.rounding = s->rounding,
		.moved = fabs(s->k - s->now.knee) > BOLD,
	};
}

/* Read the quantiles that decide the limit. */
static void read_posteriors(struct elastic *s)
{
	const double high = posterior_quantile(&s->posterior, 0.84);

	s->own = posterior_quantile(&s->posterior, 0.5);
	s->cap = posterior_quantile(&s->joint, CAP);
	s->spread = (high - posterior_quantile(&s->posterior, 0.16)) / 2;
}

static double elastic_init(void *state, const void *config, double random)
{
	const struct weir_elastic_config *c = config;
	struct elastic *s = state;

	s->min = c->min;
	s->max = c->max;
	s->initial = (uint32_t)clamp(c->initial, s->min, s->max);
	s->target = c->target;
	s->pause = c->pause;
	s->limit = s->initial;
	s->k = log(s->initial);
	ceiling_init(&s->ceiling, log(s->max));
	s->means.sigma2 = s->each = 1;
	s->reached_mean = 0.5;
	s->wide = true;
	s->now = epoch_from(s, 0);
	s->now.moved = true; /* the first calls come together: each finds one more, and no slope */
	posterior_init(&s->posterior, log(s->min), log(s->max), 1 - s->target);
	s->joint = s->posterior;
	read_posteriors(s);
	(void)random;
	return s->limit;
}

/*
 * Count the calls that the server may still work on although they were cancelled. By how much they are
 * more than those in flight follows from latency, which is chance as well. A number that followed each
 * epoch would make chance look like a queue, so it follows large changes of the slow mean only.
 */
static void count_abandoned(struct elastic *s, struct line *l)
{
	const double rtt = s->level.n > 0 ? s->means.usual : exp(l->y);
	const double now = others_abandoned(&s->others, rtt);

	if (fabs(now - (double)s->abandoned) > BOLD)
		s->abandoned = (float)now;
	l->x += (double)s->abandoned;
}

static void loosen(struct elastic *s, double part, double joint, double most)
{
	posterior_loosen(&s->posterior, s->k, part, most);
	posterior_loosen(&s->joint, s->k, joint, most);
}

/*
 * Something other than n has changed latency, so the knee may have moved. If it was known, and calls take
 * longer now, it has not moved up: a server that has lost workers, or whose work takes longer, needs no more
 * calls than before. Each of several limiters would find a slope near 1 for itself, and all would rise. A
 * network that has become slower does move the knee up, which has to show in slopes.
 */
static void forget(struct elastic *s, bool slower)
{
	const bool known = s->spread < 2 * BOLD || s->reached_mean > 0.5;

	loosen(s, FORGET, FORGET, slower && known ? s->k : INFINITY);
	read_posteriors(s);
	s->room = 0;
	s->level.n = 0;
}

static struct level_epoch level_of(const struct elastic *s, const struct line *l)
{
	return (struct level_epoch){
		.x = l->x,
		.y = l->y,
		.whole = l->whole,
		.uncertain = l->uncertain,
		.part = l->part,
		.n = l->n,
		.sigma2 = s->means.sigma2,
		.scatter = s->means.scatter,
		.used = s->reached_mean > OFTEN,
		.reached = s->reached > OFTEN,
	};
}

/* The first epoch after a shift sets all means. */
static void set_means(struct elastic *s, const struct line *l)
{
	means_set(&s->means, l);
	s->level = (struct level){.x = l->x, .y = l->y, .n = l->n};
	s->ref = (struct reference){.x = l->x, .y = l->y, .n = l->n};
}

/*
 * Update the posteriors by the slope among the epoch's samples, by the change from the slow means to
 * the epoch's, and by the probe pair that this epoch completes, if any. Returns false if there was
 * no information in them.
 */
static bool learn_slopes(struct elastic *s, const struct epoch *e, const struct line *l)
{
	struct evidence slope, change, pair;
	struct contrast c;
	double variance;
	bool news;

	means_vary(&s->means, l);
	variance = means_variance(&s->means, l->n);
	slope = means_within(l, fmax(variance, WITHIN_LEAST));
	change = means_between(&s->means, l, variance);
	means_follow(&s->means, l);
	news = !e->moved && posterior_update(&s->posterior, &slope);
	news = posterior_update(&s->posterior, &change) || news;
	if (e->dither.pair == 0 || !probe_pair_add(&s->probes, &e->dither, l->n, l->x, l->y, &c))
		return news;
	pair = means_probed(&s->means, &c, l, variance);
	return posterior_update(&s->joint, &pair) || news;
}

/* How far the limit holds back overload: from 0, not at all, to 1, fully. */
static double binding(const struct elastic *s)
{
	return clamp(s->reached / OFTEN, 0, 1);
}

/* Whether the limit is hardly ever reached, and was not in the last epoch. */
static bool unused(const struct elastic *s)
{
	return s->reached == 0 && s->reached_mean <= OFTEN;
}

/*
 * The step in ln n to where the posteriors have the knee. The bound applies to the distance from
 * where this epoch was, as the limit may have moved since the epoch began; upwards also from where
 * it is now. A step upwards is half of that: one for each epoch raises the limit as fast as a whole
 * one for every other epoch, and the limit is lower on the way. Where fewer than half of the calls
 * find the limit reached, it is not needed so soon, and a server may collapse before it is. But of calls
 * that come in bunches, only the last one that is admitted finds it reached, although many are refused:
 * so it is needed as well where it is reached at all and a bold probe would exceed it on average, and where
 * nearly all of the last ten epochs have reached it. A limit that is not used does not fall: nothing holds n
 * there, so n follows from latency too. Where calls take half as long, half as many are in flight, as if a
 * queue had become shorter, and the knee seems to be below.
 */
static double stride(const struct elastic *s, const struct epoch *e)
{
	const double step = fmin(s->own, s->cap) - s->k;
	const double since = s->k - e->knee;
	const bool filled = s->reached > 0 && (double)s->use.load > exp(-BOLD);
	const double bunches = s->reached > 0 ? pow((double)s->reaching, 4) : 0;
	const double needed = filled ? 1 : fmin(1, fmax(2 * s->reached, bunches));

	if (step <= 0 && unused(s))
		return 0;
	if (step <= 0)
		return fmax(step, fmin(0, -RISE - since));
	return fmin(step, needed * clamp(RISE - fmax(0, since), 0, RISE / 2));
}

/*
 * Where far fewer calls end than before, the server may be collapsing, and calls that were admitted before it
 * did do not show that. So what the limit rose by since this epoch is taken back. Where the limit is hardly
 * ever reached, fewer calls may have come.
 */
static double take_back(const struct elastic *s, const struct epoch *e, double change, double step)
{
	if (change >= -RISE || s->reached_mean <= OFTEN)
		return step;
	return fmin(step, fmin(0, e->knee - s->k));
}

/*
 * Make room above the knee. Bunches need it where calls reach the limit without lasting overload:
 * they reach it rarely, or more than half of the limit is unused on average. If it is unused and they
 * reach it often all the same, bunches are larger than ROOM_MOST, and get as much as they need. Under
 * overload as much is needed as keeps the server from being idle (idle.h): room grows by a call an epoch
 * and falls by a part, as what is far too much for overload must soon be gone. The less an epoch changes
 * the idle fraction, the smaller is the step: that is a mean of the past, and room would swing around it.
 * Where the knee is never idle, room is far above what is needed, and falls by 6 % at least. It stays
 * below the ceiling.
 */
static void make_room(struct elastic *s)
{
	const bool rare = s->reached_mean < OFTEN, empty = (double)s->use.load < EMPTY;
	const double most = rare || empty ? highest(s) - s->k : ROOM_MOST;
	const double step = fmin(0.1, 1 / s->limit), excess = (double)s->idle.fraction / IDLE - 1;
	const double weight = (double)s->idle.weight;

	if (s->reached > 0 && rare)
		s->room = fmax(s->room, fmin(s->room + step, ROOM_MOST));
	else if (s->reached > 0 && empty)
		s->room += step;
	else if (!rare && !empty && excess > 0)
		s->room += step * fmin(1, excess * weight);
	else if (!rare && !empty)
		s->room += SLOW * s->room * excess * fmax(weight, -3 * QUICK * excess);
	if (s->reached > 0)
		ceiling_raise(&s->ceiling, s->k, highest(s));
	s->room = clamp(ceiling_bound(&s->ceiling, s->k, s->room), 0, fmax(0, most));
}

/* What room is to stay below, in ln n, if throughput was lost under the limit of the epoch. */
static double lost_above(const struct elastic *s, const struct epoch *e)
{
	return fmax(s->k, log((double)e->limit) + (double)s->abandoned - BOLD);
}

static void remember_collapse(struct elastic *s, const struct epoch *e)
{
	ceiling_remember(&s->ceiling, lost_above(s, e), LOOSEN);
}

/*
 * Calls that room lets in above the knee may slow a server down until it serves less than without them.
 * The knee cannot fall for that if it is at its lowest already. So where as much throughput is lost as in
 * a collapse, in ln X and by the mean latency, room falls by a part of that.
 */
static void reduce_room(struct elastic *s, double loss)
{
	if (loss <= RISE)
		return;
	s->room = fmax(0, s->room - QUICK * loss);
	(void)ceiling_lower(&s->ceiling, lost_above(s, &s->last));
}

static struct reference_epoch reference_of(const struct elastic *s, const struct line *l)
{
	return (struct reference_epoch){
		.x = s->means.x,
		.y = s->means.y,
		.part = l->part,
		.n = l->n,
		.sigma2 = s->means.sigma2,
		.target = s->target,
		.stride = RISE,
		.used = s->reached_mean > OFTEN,
		.unused = unused(s),
	};
}

/*
 * The throughput check: if n has grown since the reference point and throughput has not grown with
 * it, take the growth back, by a part of what throughput lacks in each epoch.
 */
static double check_throughput(struct elastic *s, const struct line *l, double step)
{
	const struct reference_epoch now = reference_of(s, l);
	const struct growth growth = reference_check(&s->ref, &now);

	if (growth.lacks <= 0)
		return step;
	reduce_room(s, queueing_part(&s->means.queueing) * growth.y - growth.x);
	return fmin(step, -QUICK * growth.lacks);
}

/* What the epoch says of idle time: latency is compared with the slow means, without this epoch. */
static struct idle_epoch idle_of(const struct elastic *s, const struct epoch *e,
				 const struct line *l)
{
	return (struct idle_epoch){
		.n = e->n,
		.y = e->y,
		.limit = (double)e->limit,
		.sigma2 = s->means.sigma2,
		.part = l->part,
		.rounding = e->moved ? 0 : (double)e->rounding,
		.rise = posterior_rise(&s->posterior, s->k, l->x) -
			posterior_rise(&s->posterior, s->k, s->means.x),
		.above = l->part * (l->y - s->means.y),
		.noise = s->means.sigma2 / l->n + s->means.scatter,
		.bound = s->reached > OFTEN,
	};
}

/* A server has collapsed at x, in ln n: as evidence, a slope of 1 below it. */
static void learn_collapse(struct elastic *s, double x)
{
	const struct evidence steep = {.from = x - RISE, .to = x, .change = RISE};

	posterior_update(&s->posterior, &steep);
	read_posteriors(s);
}

/*
 * Lower the limit, to below where the knee was and to below n. A server that has collapsed serves
 * more with fewer calls, and the sooner it has fewer, the shorter is its queue. One that has only
 * become slower does not, and what this step shows lets the limit rise again: the means become those
 * of the collapse, so that the next epochs are compared with it.
 */
static void step_down(struct elastic *s, const struct epoch *e, const struct line *l)
{
	remember_collapse(s, e);
	learn_collapse(s, l->x);
	s->k = clamp(fmin(s->own, l->x) - RISE, log(s->min), s->k);
	s->room = 0;
	set_means(s, l);
}

/*
 * Whether timeouts cut off what latency would show: some calls time out, and those that are served take
 * nearly as long. Then a longer queue makes more calls time out, but latency stays, as if there were
 * none. Where calls time out for another reason, those that are served take far less. Where nearly all
 * time out, their permits are held back: the server may have stopped, which says nothing of the knee.
 */
static bool cut_off(const struct elastic *s, const struct epoch *e)
{
	const double lost = (double)e->lost / e->n;

	return lost > OFTEN && lost < 1 - OFTEN &&
	       s->given_up.rtt * exp(RISE) > (double)s->given_up.timeout;
}

/* A server does not cope with x calls, in ln n, and the epoch's slopes do not show that. */
static void fall_below(struct elastic *s, double x)
{
	learn_collapse(s, x);
	s->k = clamp(s->own, s->k - RISE, s->k);
}

/*
 * Timeouts cut off what latency would show. If much of the limit is room, that was too large, and the knee
 * may be right: where a bunch is more than what the server can do in time, the rest of it times out. So room
 * becomes smaller than it was, and the knee falls only once little room is left.
 */
static void let_fewer_time_out(struct elastic *s, const struct epoch *e, const struct line *l)
{
	if (s->room <= BOLD) {
		fall_below(s, l->x);
		s->room = 0;
		return;
	}
	(void)ceiling_lower(&s->ceiling, lost_above(s, e));
	s->room = clamp((double)s->ceiling.most - s->k, 0, s->room);
}

/* change: of the rate at which calls end, in ln X, since the epoch before. */
static void close_epoch(struct elastic *s, double change)
{
	const struct epoch *e = &s->last;
	struct level_epoch level;
	struct idle_epoch idle;
	struct line l;
	double step;

	if (e->n < EPOCH_WIDE)
		return;
	s->reached = (double)e->reached / e->n;
	l = epoch_line(e, others_part(&s->others));
	count_abandoned(s, &l);
	s->reached_mean += fmin(1, e->n / 500) * (s->reached - s->reached_mean);
	s->reaching += (float)(SLOW * ((s->reached > 0 ? 1 : 0) - (double)s->reaching));
	if (cut_off(s, e)) {
		let_fewer_time_out(s, e, &l);
		return;
	}
	level = level_of(s, &l);
	if (level_lost(&s->level, &level)) {
		s->room = 0;
		remember_collapse(s, e);
	}
	if (level_collapsed(&s->level, &level)) {
		step_down(s, e, &l);
		return;
	}
	if (level_shifted(&s->level, &level)) {
		forget(s, l.y > s->level.y);
		return;
	}
	if (s->level.n == 0)
		set_means(s, &l);
	else
		level_follow(&s->level, &level);

	s->elasticity = l.xx > 1e-9 ? (float)(1 - l.xy / l.xx) : 0;
	loosen(s, LOOSEN, e->dither.pair != 0 ? LOOSEN_JOINT * binding(s) : 0, INFINITY);
	idle = idle_of(s, e, &l);
	if (learn_slopes(s, e, &l) || binding(s) > 0)
		read_posteriors(s);
	idle.sigma2 = s->means.sigma2; /* what calls find is compared within the epoch */
	idle_update(&s->idle, &e->idle, &idle);
	make_room(s);
	step = take_back(s, e, change, check_throughput(s, &l, stride(s, e)));
	s->k = clamp(s->k + step, log(s->min), highest(s));
}

/* Permits that are held back cannot be used: a limit that seemed empty because of them would get room. */
static void update_load(struct elastic *s, double now)
{
	const double limit = fmax(s->min, s->limit - s->given_up.held);
	const double inflight = use_begin(&s->use, limit, now);

	if (inflight >= 0)
		idle_inflight(&s->idle, inflight);
}

/*
 * Whether a small limit, of which one call is at least a bold probe, does not move in this pair. A limit
 * that always moves by whole calls is never rounded, and idle.h would see nothing.
 */
static bool rests(const struct elastic *s, const struct dither *dither)
{
	return s->limit <= 1 / BOLD && dither->chance > 1 - REST;
}

/*
 * The height in ln n of a probe that costs little. The more calls an epoch has, the better are its means
 * known, to 1 / sqrt(n), and the lower is a probe that shows as much. In calls, it grows with sqrt(n).
 */
static double small_probe(const struct elastic *s)
{
	return SMALL * fmin(1, FEW / sqrt(s->limit));
}

/* The height in ln n of the dither of the epoch that begins; 0 if n varies by itself or rests. */
static double next_dither(struct elastic *s, const struct weir_window *w, struct dither *dither)
{
	const double bold = clamp(BOLD_MORE * s->spread * s->spread, OFTEN, 1);

	s->wide = bold >= 1;
	*dither = dither_at(w->real > 0 ? w->real : w->end, s->means.y);
	if (s->reached <= OFTEN)
		return 0;
	if (rests(s, dither)) {
		dither->pair = 0;
		return 0;
	}
	return dither->direction * (dither->chance < bold ? BOLD : small_probe(s));
}

/* Set the limit for the calls to come. Rounding carries fractions over to the next epochs. */
static void set_limit(struct elastic *s, double height)
{
	const double middle = s->k + s->room - (double)s->abandoned;
	double limit = exp(middle + height);

	if (height > 0)
		limit = fmax(limit, floor(exp(middle)) + 1);
	if (height < 0)
		limit = fmin(limit, ceil(exp(middle)) - 1);
	limit = clamp(limit, s->min, s->max);
	s->limit = clamp(floor(limit + (double)s->carry), s->min, s->max);
	s->rounding = (float)log(s->limit / limit);
	s->carry = (float)clamp((double)s->carry + limit - s->limit, 0, 1);
}

/* The epoch in which the window's calls were admitted; NULL if it has been evaluated already. */
static struct epoch *epoch_of(struct elastic *s, const struct weir_window *w)
{
	const double admitted = (double)w->end - w->rtt;

	if (admitted >= s->now.start)
		return &s->now;
	if ((double)w->end < s->now.start)
		s->now.start = (double)w->end; /* the clock went back */
	return admitted >= s->last.start ? &s->last : NULL;
}

/*
 * The latency that counts, of a call that found n in flight, x = ln n. How many of the longest calls an
 * epoch sees depends on how long it lasts, and on a cold start on how long ago that was: more of them would
 * look like a queue. But calls that find more in flight than usual may take longer by as much.
 */
static double shortened(const struct elastic *s, double rtt, double x)
{
	if (s->level.n == 0 || rtt <= LONG * s->means.usual)
		return rtt;
	return fmin(rtt, LONG * exp(s->means.y + fmax(0, x - s->means.x)));
}

/*
 * Each lost call is a sample, of the others perhaps only some: so it has less weight than these. As
 * long as none has been served, nothing says how long calls take, and dropped ones fill an epoch too.
 * Calls that waited for something else say nothing about n when they time out. And they end long after
 * their epoch, unless there are few calls and epochs are long: so the lower the limit is, the more of
 * them would count, as if latency grew while n fell.
 */
static void add_window(const struct elastic *s, struct epoch *e, const struct weir_window *w,
		       double inflight)
{
	const double weight = overloads(w) > 0 ? 1 / (double)s->each : 1;
	const bool elsewhere = given_up_elsewhere(&s->given_up, w);
	const bool shows = has_latency(w) && w->dropped == 0 && !elsewhere;
	const double count = shows ? w->count * weight : 0;
	const double x = log(fmax(1, inflight)), n = x + (double)s->abandoned;
	const double y = cbrt(shortened(s, w->rtt, n)), whole = cbrt(w->rtt);

	e->calls += calls_of(w) + w->others - (s->level.n > 0 ? w->dropped * each_of(w) : 0);
	e->samples += elsewhere ? 0 : (float)samples_of(w);
	if (inflight >= (double)e->limit)
		e->reached += (float)count;
	if (w->timed_out > 0)
		e->lost += (float)count;
	epoch_add(e, count, x, y);
	e->whole += (float)(count * whole);
	e->wholes += (float)(count * whole * whole);
	idle_add(&e->idle, count, inflight, y, (double)e->knee_calls,
		 posterior_rise(&s->posterior, e->knee, n));
}

/*
 * Samples that an epoch needs, so that its mean is known better than a bold probe moves it. In an
 * epoch whose calls happen to be long, they also find more of each other in flight, as if latency
 * grew with n. With fewer samples that decides, and the limit sinks.
 */
static double least_samples(const struct elastic *s)
{
	return s->wide ? EPOCH_WIDE : fmax(FEW, s->means.sigma2 / (BOLD * BOLD));
}

/*
 * An epoch needs as many calls as end in a latency while the limit is reached, or few once it has lasted
 * long: little traffic. These are as many as the limit, unless calls that are no samples take longer.
 * Where a sample stands for several calls, or few calls are samples, it needs enough samples as well.
 * Dropped calls do not count, as they end long before those that are served.
 */
static bool is_full(const struct elastic *s, double now)
{
	const double calls = s->limit * others_ending(&s->others);

	return (double)s->now.samples >= least_samples(s) &&
	       (now > s->now.late || s->now.calls >= calls);
}

/* Whether most calls of the epoch before have had time to end, although this one has few so far. */
static bool is_late(const struct elastic *s, double now)
{
	return now > s->now.late && s->last.n >= EPOCH_WIDE;
}

/* Evaluate the epoch before, and set the limit by it. */
static void evaluate(struct elastic *s, const struct weir_window *w, struct dither *dither)
{
	const double change = use_change(&s->use, (double)w->end);

	update_load(s, (double)w->end);
	close_epoch(s, change);
	set_limit(s, next_dither(s, w, dither));
}

/* The epoch goes on, with another limit. It is no part of a probe pair, as n changes within it. */
static void go_on(struct elastic *s)
{
	struct epoch *e = &s->now;

	e->moved = e->moved || fabs(s->k - e->knee) > BOLD;
	e->knee = s->k;
	e->knee_calls = (float)knee_calls(s);
	e->limit = (float)s->limit;
	e->rounding = 0;
	e->dither.pair = 0;
}

/*
 * Whether the limit rises before an epoch is full. On a cold start, a small limit of whose calls few are
 * samples would take hundreds of latencies to get as many samples as an epoch needs. So until latencies can
 * be compared, the limit rises as well when as many calls as it have ended at the server. A cancelled call
 * did not end there. Not where a call was dropped or timed out, or most samples did not find the limit reached.
 */
static bool rises_early(const struct elastic *s)
{
	const struct epoch *e = &s->now;
	const double ended = e->calls * (1 - others_cancelled(&s->others));
	const bool lost = e->lost > 0 || (double)e->samples > e->n;

	return s->level.n == 0 && s->wide && e->n > 0 && 2 * (double)e->reached >= e->n && !lost &&
	       ended >= s->limit;
}

static void rise_early(struct elastic *s)
{
	s->k += clamp(fmin(s->own, s->cap) - s->k, 0, RISE / 2);
	set_limit(s, 0);
	go_on(s);
	s->now.calls = 0;
}

/* Take in a window of ordinary calls; permits of long-lived ones are not part of n. */
static void learn_from(struct elastic *s, const struct weir_window *w)
{
	struct epoch *e = epoch_of(s, w);
	const double now = (double)w->end;
	struct dither dither;

	others_update(&s->others, w);
	given_up_update(&s->given_up, w, s->limit - s->min, s->others.rtt);
	/* Fewer calls that are lost in a row than an epoch needs may be chance. */
	if (given_up_pause(&s->given_up, w, fmax(s->limit, EPOCH_WIDE), s->limit - s->min, s->pause,
			   s->others.rtt))
		fall_below(s, s->k);
	if (overloads(w) == 0 && w->count > 0)
		s->each = (float)each_of(w);
	use_add(&s->use, w, s->limit);
	if (e != NULL)
		add_window(s, e, w, w->inflight_max - s->long_lived.permits);
	if (samples_of(w) == 0)
		return; /* a cancelled call: the next sample evaluates the epoch */
	if (is_full(s, now)) {
		evaluate(s, w, &dither);
		s->last = s->now;
		s->now = epoch_from(s, now);
		s->now.dither = dither;
	} else if (is_late(s, now)) {
		evaluate(s, w, &dither);
		s->last = epoch_from(s, s->now.start);
		go_on(s);
	} else if (rises_early(s)) {
		rise_early(s);
	}
}

/*
 * Long-lived calls appeared or vanished: move their permits out of the limit or back into it. The
 * sum of both stays, within bounds.
 */
static void move_by(struct elastic *s, double permits, double now)
{
	const double least = fmax(s->min, fmin(s->initial, s->max));
	const double knee = clamp(knee_calls(s) + permits, least, s->max);

	s->k = log(knee) + (double)s->abandoned;
	s->limit = floor(knee);
	s->rounding = 0; /* this limit was not rounded in turns */
	s->level.n = 0;
	s->last = s->now = epoch_from(s, now);
}

static double elastic_update(void *state, const struct weir_window *w)
{
	struct elastic *s = state;
	const double before = s->long_lived.permits;
	double pause;

	long_lived_update(&s->long_lived, w);
	if ((before > 0) != (s->long_lived.permits > 0))
		move_by(s, before - s->long_lived.permits, (double)w->end);
	learn_from(s, w);
	pause = given_up_pause_left(&s->given_up, w->end);
	if (pause > 0)
		return -pause;
	return fmax(s->min, s->limit - ceil(s->given_up.held)) + s->long_lived.permits;
}

static const char *const elastic_numbers[] = {
	"estimate", "deviation", "elasticity", "noise", "reached", "load", "room", "held", NULL};

static void elastic_observe(const void *state, double *values)
{
	const struct elastic *s = state;

	values[0] = knee_calls(s);
	values[1] = s->spread;
	values[2] = (double)s->elasticity;
	values[3] = sqrt(s->means.sigma2);
	values[4] = s->reached;
	values[5] = (double)s->use.load;
	values[6] = exp(s->room);
	values[7] = s->long_lived.permits;
}

#define OFFSET(field) offsetof(struct weir_elastic_config, field)

static const struct weir_param elastic_params[] = {
	{"initial", WEIR_PARAM_U32, OFFSET(initial), 1, LIMIT_TOP, "8", "limit at first"},
	{"min", WEIR_PARAM_U32, OFFSET(min), 1, LIMIT_TOP, "1", "lowest limit"},
	{"max", WEIR_PARAM_U32, OFFSET(max), 1, LIMIT_TOP, "100000", "highest limit"},
	{"target", WEIR_PARAM_DOUBLE, OFFSET(target), 0.05, 0.9, "0.25",
	 "percent of throughput that one percent more in flight must bring"},
	{"pause", WEIR_PARAM_DOUBLE, OFFSET(pause), 0.01, 64, "2",
	 "longest pause when all calls time out, in timeouts"},
};

_Static_assert(sizeof(struct elastic) <= WEIR_LIMIT_STATE_MAX, "the state fits");

static const struct weir_sampling elastic_sampling = {.windowing = WEIR_WINDOW_SAMPLE};

const struct weir_limit_ops weir_elastic = {
	.size = sizeof(struct weir_limit_ops),
	.flags = WEIR_LIMIT_DETACHED | WEIR_LIMIT_NOW | WEIR_LIMIT_IN_PLACE | WEIR_LIMIT_PAUSES |
		 WEIR_LIMIT_CANCELLED | WEIR_LIMIT_REAL_TIME,
	.name = "elastic",
	.about = "Grows while that brings throughput, and no further; needs no reference latency.",
	.version = 37,
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
