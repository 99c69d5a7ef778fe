/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "limits/common.h"
#include "constants.h"
#include "queueing.h"

double queueing_evenness(double root, double square)
{
	return -1.5 * log(fmax(1, square / (root * root)));
}

void queueing_learn(struct queueing *q, const struct queueing_epoch *e)
{
	const double weight = (e->limit - (double)q->limit) * e->n / e->variance;
	const double evened = weight * (e->evenness - (double)q->evenness);

	q->evened += (float)(LASTING * (evened - (double)q->evened));
	q->risen += (float)(LASTING * (weight * e->above - (double)q->risen));
}

void queueing_follow(struct queueing *q, const struct queueing_epoch *e, double weight)
{
	q->limit += (float)(weight * (e->limit - (double)q->limit));
	q->evenness += (float)(weight * (e->evenness - (double)q->evenness));
}

/*
 * In a queue that begins, evenness rises by 1 - exp(2 evenness) of ln R where work is log-normal. The mean
 * follows all of a slope until latencies have shown something else.
 */
double queueing_part(const struct queueing *q)
{
	const double least = exp(2 * (double)q->evenness);
	const double risen = fmax(0, (double)q->risen) + 2 * RISE_PRIOR;

	return clamp(1 - (double)q->evened / risen, least, 1);
}
