/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "constants.h"
#include "level.h"
#include "means.h"

/* What the epoch says of queueing: latency is compared with the slow means, without this epoch. */
static struct queueing_epoch queueing_of(const struct means *m, const struct line *l)
{
	return (struct queueing_epoch){
		.limit = l->limit,
		.evenness = l->evenness,
		.above = l->y - m->y,
		.n = l->n,
		.variance = m->sigma2,
	};
}

void means_set(struct means *m, const struct line *l)
{
	const struct queueing_epoch queueing = queueing_of(m, l);

	queueing_follow(&m->queueing, &queueing, 1);
	m->x = l->x;
	m->y = l->y;
	m->usual = exp(m->y);
	m->xx = 0;
	m->n = l->n;
}

/*
 * The variance of the samples falls more slowly than it rises: epochs that see no long calls are no
 * proof that there are none, and the next long ones would be taken for a queue.
 */
void means_vary(struct means *m, const struct line *l)
{
	const double off = level_surprise(l->x - m->x, l->part * (l->y - m->y));

	m->sigma2 += (l->variance > m->sigma2 ? QUICK : SLOW) * (l->variance - m->sigma2);
	m->scatter += SLOW * (off * off - m->scatter);
}

double means_variance(const struct means *m, double n)
{
	return fmax(m->sigma2, n * m->scatter);
}

struct evidence means_within(const struct line *l, double variance)
{
	const double step = POSTERIOR_STEP;
	const double xx = l->xx + 1e-9; /* all may have found the same n */

	return (struct evidence){
		.from = l->x - step / 2,
		.to = l->x + step / 2,
		.change = step * l->xy / xx,
		.variance = step * step * variance / xx,
	};
}

struct evidence means_between(const struct means *m, const struct line *l, double variance)
{
	const double part = queueing_part(&m->queueing);

	return (struct evidence){
		.from = m->x,
		.spread = sqrt(m->xx),
		.to = l->x,
		.change = part * l->part * (l->y - m->y),
		.variance = part * part * variance * (1 / l->n + 1 / m->n),
	};
}

struct evidence means_probed(const struct means *m, const struct contrast *c, const struct line *l,
			     double variance)
{
	const double part = queueing_part(&m->queueing);

	return (struct evidence){
		.from = c->down,
		.to = c->up,
		.change = part * l->part * c->rise,
		.variance = part * part * variance / c->n,
	};
}

void means_follow(struct means *m, const struct line *l)
{
	const double x = l->x - m->x;
	const double weight = fmin(1, SLOW + x * x), rest = 1 - weight;
	const struct queueing_epoch queueing = queueing_of(m, l);

	queueing_learn(&m->queueing, &queueing);
	queueing_follow(&m->queueing, &queueing, weight);
	m->x += weight * x;
	m->xx = rest * (m->xx + weight * x * x);
	m->y += weight * (l->y - m->y);
	m->usual = exp(m->y);
	m->n = 1 / (rest * rest / m->n + weight * weight / l->n);
}
