/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_metrics.c - limits as a store has them, as OpenMetrics text.
 */
#include "fleet.h"

#include <errno.h>
#include <inttypes.h>
#include <weir/metrics.h>

static const struct weir_metric capacity = {WEIR_METRIC_GAUGE, "weir_fleet_limit_capacity", NULL,
					    "Units of all members together."};
static const struct weir_metric effective = {WEIR_METRIC_GAUGE, "weir_fleet_limit_effective", NULL,
					     "The capacity, less what throttling takes."};
static const struct weir_metric granted = {WEIR_METRIC_GAUGE, "weir_fleet_limit_granted", NULL,
					   "Units of the shared part that members hold."};
static const struct weir_metric wanted = {WEIR_METRIC_GAUGE, "weir_fleet_limit_wanted", NULL,
					  "Units that members want."};
static const struct weir_metric members = {WEIR_METRIC_GAUGE, "weir_fleet_limit_members", NULL,
					   "Members that are present."};
static const struct weir_metric member_wants = {WEIR_METRIC_GAUGE, "weir_fleet_member_wants", NULL,
						"Units that the member wants."};
static const struct weir_metric member_share = {
	WEIR_METRIC_GAUGE, "weir_fleet_member_share", NULL,
	"Units that the member may use, including reserved ones."};
static const struct weir_metric member_drained = {WEIR_METRIC_GAUGE, "weir_fleet_member_drained",
						  NULL, "1 if an operator has drained the member."};
static const struct weir_metric workers = {WEIR_METRIC_GAUGE, "weir_fleet_work_members", NULL,
					   "Members that share the partitions of work."};
static const struct weir_metric owned = {WEIR_METRIC_GAUGE, "weir_fleet_work_owned", NULL,
					 "Partitions of work with an owner."};

/* What is being written, and the first error. */
struct writing {
	struct weir_metrics *metrics;
	int error;
};

/* A limit that was named twice is written once. */
static void add(struct writing *w, const struct weir_metric *metric, uint64_t value,
		const struct weir_label *labels, size_t count)
{
	const int r = weir_metrics_add_value(w->metrics, metric, (double)value, labels, count);

	if (w->error == 0 && r != -EEXIST)
		w->error = r;
}

static void add_limit(struct writing *w, const struct fleet_reading *r)
{
	const struct weir_label label = {"limit", r->name, 0};

	add(w, &capacity, r->limit.capacity, &label, 1);
	add(w, &effective, r->limit.effective, &label, 1);
	add(w, &granted, r->limit.granted, &label, 1);
	add(w, &wanted, r->limit.wanted, &label, 1);
	add(w, &members, r->limit.members, &label, 1);
}

static void add_member(struct writing *w, const char *limit, const struct weir_fleet_member *m)
{
	char id[20];
	const struct weir_label labels[] = {
		{"limit", limit, 0}, {"member", id, 0}, {"label", m->label, 0}};

	snprintf(id, sizeof(id), "%016" PRIx64, m->id);
	add(w, &member_wants, m->wants, labels, 3);
	add(w, &member_share, m->fence != 0 ? fleet_share(m) : 0, labels, 3);
	add(w, &member_drained, m->drained, labels, 3);
}

static void add_reading(struct writing *w, const struct fleet_reading *r)
{
	const struct weir_label label = {"work", r->name, 0};

	if (r->limit.version != 0)
		add_limit(w, r);
	for (size_t i = 0; i < r->member_count; i++)
		add_member(w, r->name, &r->members[i]);
	if (r->workers + r->owned == 0)
		return;
	add(w, &workers, r->workers, &label, 1);
	add(w, &owned, r->owned, &label, 1);
}

static int write_piece(void *arg, const char *piece, size_t size)
{
	return fwrite(piece, 1, size, arg) == size ? 0 : -EIO;
}

bool fleet_metrics(FILE *out, const struct fleet_readings *readings)
{
	struct writing w = {.error = 0};

	if (weir_metrics_create(&w.metrics) != 0)
		return false;
	for (size_t i = 0; i < readings->count; i++)
		add_reading(&w, &readings->at[i]);
	if (w.error == 0)
		(void)weir_metrics_write(w.metrics, WEIR_OPENMETRICS, write_piece, out);
	weir_metrics_destroy(w.metrics);
	return w.error == 0;
}
