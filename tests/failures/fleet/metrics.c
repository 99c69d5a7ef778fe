/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics of a fleet with a share and partitions of work. */
#include <weir/fleet_metrics.h>

#include "fleet.h"

static struct weir_metrics *metrics;

static void begin_metrics(void)
{
	begin_with_units();
	CHECK(open_work() == 0);
	CHECK(weir_metrics_create(&metrics) == 0);
}

static int add_metrics(void)
{
	return weir_fleet_metrics_add(metrics, fleet, NULL, 0);
}

/* Some of the numbers may have been added: each fleet is added once. */
static void metrics_anew(void)
{
	weir_metrics_destroy(metrics);
	CHECK(weir_metrics_create(&metrics) == 0);
}

static void has_metrics(void)
{
	static char text[1 << 16];

	CHECK(weir_metrics_text(metrics, WEIR_OPENMETRICS, text, sizeof(text)) < sizeof(text));
	CHECK(strstr(text, "weir_share_units{limit=\"limit\"} 100\n") != NULL);
	CHECK(strstr(text, "weir_work_partitions{work=\"work\"} 2\n") != NULL);
}

static void end_metrics(void)
{
	weir_metrics_destroy(metrics);
	metrics = NULL;
	end_work();
}

static struct failure_case cases[] = {
	{"weir_fleet_metrics_add", NULL, begin_metrics, add_metrics, metrics_anew, has_metrics,
	 end_metrics},
};

const struct failure_table metrics_failures = {cases, COUNT(cases)};
