/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fleet's numbers as metrics.
 *
 * All numbers are copied at one instant, under the lock of the reports, which is never held while
 * the fleet waits for the store or while a callback runs. The set of metrics is filled afterwards.
 */

#include <weir/fleet_metrics.h>
#include <weir/work.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/protocol/share.h"

struct share_numbers {
	char name[WEIR_SHARE_NAME_MAX + 1];
	enum weir_share_state state;
	double units, wants, capacity, effective, members, lease, conflicts, changes, mismatch;
};

struct fleet_numbers {
	double up, writable, durable, refreshes, failures, sessions, took, age;
	struct share_numbers *shares;
	struct participant_numbers *work;
	size_t share_count, work_count;
};

/* A metric, and where its value is in the numbers above. */
struct metric {
	struct weir_metric metric;
	size_t offset;
};

#define OF(type, field) offsetof(struct type, field)

/* clang-format off */
static const struct metric of_fleet[] = {
	{{WEIR_METRIC_GAUGE, "weir_fleet_store_up", NULL,
	  "1 if the store answered the last refresh."}, OF(fleet_numbers, up)},
	{{WEIR_METRIC_GAUGE, "weir_fleet_store_writable", NULL,
	  "1 unless the store refuses writes."}, OF(fleet_numbers, writable)},
	{{WEIR_METRIC_GAUGE, "weir_fleet_store_durable", NULL,
	  "1 if the store keeps what it acknowledges, as it is set up now."},
	 OF(fleet_numbers, durable)},
	{{WEIR_METRIC_COUNTER, "weir_fleet_refreshes", NULL, "Refreshes."},
	 OF(fleet_numbers, refreshes)},
	{{WEIR_METRIC_COUNTER, "weir_fleet_refresh_failures", NULL, "Refreshes that failed."},
	 OF(fleet_numbers, failures)},
	{{WEIR_METRIC_COUNTER, "weir_fleet_sessions", NULL,
	  "Sessions begun in the store: each but the first follows one that was lost."},
	 OF(fleet_numbers, sessions)},
	{{WEIR_METRIC_GAUGE, "weir_fleet_refresh_seconds", "seconds",
	  "How long the last refresh took."}, OF(fleet_numbers, took)},
	{{WEIR_METRIC_GAUGE, "weir_fleet_refresh_age_seconds", "seconds",
	  "Time since the last refresh that succeeded."}, OF(fleet_numbers, age)},
};

static const struct metric of_share[] = {
	{{WEIR_METRIC_GAUGE, "weir_share_units", NULL,
	  "Units that this process may use, including reserved ones."}, OF(share_numbers, units)},
	{{WEIR_METRIC_GAUGE, "weir_share_wants", NULL,
	  "Units that this process wants, as it last wrote to the store."},
	 OF(share_numbers, wants)},
	{{WEIR_METRIC_GAUGE, "weir_share_capacity", NULL,
	  "Units of all members together."}, OF(share_numbers, capacity)},
	{{WEIR_METRIC_GAUGE, "weir_share_effective", NULL,
	  "The capacity, less what throttling takes."}, OF(share_numbers, effective)},
	{{WEIR_METRIC_GAUGE, "weir_share_members", NULL,
	  "Members of the limit."}, OF(share_numbers, members)},
	{{WEIR_METRIC_GAUGE, "weir_share_lease_seconds", "seconds",
	  "What is left of the lease; 0 without one."}, OF(share_numbers, lease)},
	{{WEIR_METRIC_GAUGE, "weir_share_mismatch", NULL,
	  "1 if this process is configured with another limit than the store has."},
	 OF(share_numbers, mismatch)},
	{{WEIR_METRIC_COUNTER, "weir_share_conflicts", NULL,
	  "Commits that failed because another member committed first."},
	 OF(share_numbers, conflicts)},
	{{WEIR_METRIC_COUNTER, "weir_share_changes", NULL,
	  "Changes of the state of the share."}, OF(share_numbers, changes)},
};

static const struct metric of_work[] = {
	{{WEIR_METRIC_GAUGE, "weir_work_partitions", NULL,
	  "Partitions of work that there are."}, OF(participant_numbers, partitions)},
	{{WEIR_METRIC_GAUGE, "weir_work_owned", NULL,
	  "Partitions that this process owns."}, OF(participant_numbers, owned)},
	{{WEIR_METRIC_GAUGE, "weir_work_units", NULL,
	  "What the owned partitions are worth, including reserved units."},
	 OF(participant_numbers, units)},
	{{WEIR_METRIC_COUNTER, "weir_work_gained", NULL,
	  "Partitions that this process has become the owner of."},
	 OF(participant_numbers, gained)},
	{{WEIR_METRIC_COUNTER, "weir_work_lost", NULL,
	  "Partitions that it no longer owns."}, OF(participant_numbers, lost)},
	{{WEIR_METRIC_COUNTER, "weir_work_forced", NULL,
	  "Partitions lost because a lease or a hand-over had ended."},
	 OF(participant_numbers, forced)},
};
/* clang-format on */

static const struct weir_metric state_metric = {
	.kind = WEIR_METRIC_GAUGE,
	.name = "weir_share_state",
	.help = "1 for the state that the share is in.",
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static double seconds(weir_dur d)
{
	return (double)d / (double)WEIR_S;
}

static void copy_share(const struct weir_share *s, weir_time now, struct share_numbers *numbers)
{
	struct weir_share_info info;

	share_info(s, &info);
	*numbers = (struct share_numbers){
		.state = info.state,
		.units = (double)info.units,
		.wants = (double)info.wants,
		.capacity = (double)info.capacity,
		.effective = (double)info.effective,
		.members = info.members,
		.lease = info.deadline > now ? seconds(info.deadline - now) : 0,
		.conflicts = (double)info.conflicts,
		.changes = (double)s->changes,
		.mismatch = info.mismatch[0] != '\0',
	};
	memcpy(numbers->name, s->name, sizeof(numbers->name));
}

/* The lists hold report_lock as well when they change. */
static void copy_lists(const struct weir_fleet *f, weir_time now, struct fleet_numbers *n)
{
	for (const struct weir_share *s = f->shares;
	     s != NULL && n->share_count < WEIR_FLEET_SHARES_MAX; s = s->next)
		copy_share(s, now, &n->shares[n->share_count++]);
	for (const struct participant *p = f->participants;
	     p != NULL && n->work_count < WEIR_WORK_FLEET_MAX; p = p->next)
		p->ops->count(p, &n->work[n->work_count++]);
}

static int copy_numbers(struct weir_fleet *f, struct fleet_numbers *n)
{
	const weir_time now = fleet_now(f);

	*n = (struct fleet_numbers){
		.shares = calloc(WEIR_FLEET_SHARES_MAX, sizeof(*n->shares)),
		.work = calloc(WEIR_WORK_FLEET_MAX, sizeof(*n->work)),
	};
	if (n->shares == NULL || n->work == NULL)
		return -ENOMEM;
	pthread_mutex_lock(&f->report_lock);
	n->up = f->report.up;
	n->writable = f->report.writable;
	n->durable = f->report.durable;
	n->refreshes = (double)f->report.refreshes;
	n->failures = (double)f->report.failures;
	n->sessions = (double)f->report.sessions;
	n->took = seconds(f->report.took);
	n->age = f->report.succeeded == 0    ? NAN
		 : f->report.succeeded < now ? seconds(now - f->report.succeeded)
					     : 0;
	copy_lists(f, now, n);
	pthread_mutex_unlock(&f->report_lock);
	return 0;
}

/* The set that is filled, with the caller's labels and room for two more in front of them. */
struct filling {
	struct weir_metrics *metrics;
	struct weir_label *labels;
	size_t count;
};

/* Add all metrics of a table, with the first of the added labels. Returns 0 or the first error. */
static int add_table(const struct filling *fill, const struct metric *table, size_t count,
		     const void *numbers, size_t added)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		double value;

		memcpy(&value, (const char *)numbers + table[i].offset, sizeof(value));
		r = weir_metrics_add_value(fill->metrics, &table[i].metric, value,
					   fill->labels + 2 - added, fill->count + added);
	}
	return r;
}

static int add_state(const struct filling *fill, enum weir_share_state state)
{
	int r = 0;

	for (enum weir_share_state i = WEIR_SHARE_LOCAL; i <= WEIR_SHARE_SURPLUS && r == 0; i++) {
		fill->labels[0] = (struct weir_label){"state", weir_share_state_name(i), 0};
		r = weir_metrics_add_value(fill->metrics, &state_metric, i == state, fill->labels,
					   fill->count + 2);
	}
	return r;
}

static int add_share(const struct filling *fill, const struct share_numbers *s)
{
	int r;

	fill->labels[1] = (struct weir_label){"limit", s->name, 0};
	r = add_table(fill, of_share, COUNT(of_share), s, 1);
	return r == 0 ? add_state(fill, s->state) : r;
}

static int add_work(const struct filling *fill, const struct participant_numbers *p)
{
	fill->labels[1] = (struct weir_label){"work", p->name, 0};
	return add_table(fill, of_work, COUNT(of_work), p, 1);
}

static int add_numbers(const struct filling *fill, const struct fleet_numbers *n)
{
	int r = add_table(fill, of_fleet, COUNT(of_fleet), n, 0);

	for (size_t i = 0; i < n->share_count && r == 0; i++)
		r = add_share(fill, &n->shares[i]);
	for (size_t i = 0; i < n->work_count && r == 0; i++)
		r = add_work(fill, &n->work[i]);
	return r;
}

static bool is_reserved(const char *name)
{
	return name != NULL && (strcmp(name, "limit") == 0 || strcmp(name, "state") == 0 ||
				strcmp(name, "work") == 0);
}

int weir_fleet_metrics_add(struct weir_metrics *metrics, struct weir_fleet *f,
			   const struct weir_label *labels, size_t count)
{
	struct filling fill = {.metrics = metrics, .count = count};
	struct fleet_numbers numbers;
	int r;

	for (size_t i = 0; i < count; i++)
		if (is_reserved(labels[i].name))
			return -EINVAL;
	fill.labels = calloc(count + 2, sizeof(*labels));
	if (fill.labels == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		fill.labels[i + 2] = labels[i];
	r = copy_numbers(f, &numbers);
	if (r == 0)
		r = add_numbers(&fill, &numbers);
	free(numbers.shares);
	free(numbers.work);
	free(fill.labels);
	return r;
}
