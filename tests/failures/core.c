/* SPDX-License-Identifier: BSD-2-Clause */
/* Every function of libweir that allocates, maps, opens, reads or starts a thread. */

#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/weir.h>

#include "cases.h"

#define LIMIT   3
#define MEMBERS 4

/* What the cases work on; one at a time. */
static struct weir_config config;
static struct weir_limiter *limiter, *other;
static struct weir_registry *registry;
static struct weir_executor *executor;
static struct weir_metrics *metrics;
static struct weir_rate *rate;
static struct weir_cpu *cpu;
static size_t length;
static int tasks;
static char name[32], why[256];
static void *block;
static size_t block_size;

static const struct weir_partition partitions[] = {
	{.name = "live", .share = 0.5},
	{.name = "batch", .cap = 0.5},
};

/* Limiters. */

/* It admits as many calls as it should, and not one more. */
static void admits(struct weir_limiter *l)
{
	struct weir_token token[LIMIT + 1];

	CHECK(weir_limit(l) == LIMIT && weir_inflight(l) == 0);
	for (int i = 0; i < LIMIT; i++)
		CHECK(weir_try_acquire(l, &token[i]) == 0);
	CHECK(weir_try_acquire(l, &token[LIMIT]) == -EAGAIN);
	for (int i = 0; i < LIMIT; i++)
		weir_release(l, &token[i], WEIR_SUCCESS);
	CHECK(weir_inflight(l) == 0);
}

static int create_limiter(void)
{
	return weir_limiter_create(&config, &limiter);
}

static void no_limiter(void)
{
	CHECK(limiter == NULL);
}

static void use_limiter(void)
{
	admits(limiter);
}

static void end_limiter(void)
{
	weir_limiter_destroy(limiter);
	limiter = NULL;
}

static int init_limiter(void)
{
	static _Alignas(WEIR_ALIGN) char memory[1 << 16];

	CHECK(weir_limiter_size(&config) <= sizeof(memory));
	return weir_limiter_init(memory, sizeof(memory), &config, &limiter);
}

static void forget_limiter(void)
{
	limiter = NULL;
}

static int change_limiter(void)
{
	char saved[WEIR_SAVED_MAX];
	struct weir_token token;
	int r = weir_try_acquire(limiter, &token), size;

	if (r != 0)
		return r;
	weir_release(limiter, &token, WEIR_SUCCESS);
	size = weir_limiter_save(limiter, saved, sizeof(saved));
	if (size < 0)
		return size;
	r = weir_limiter_load(limiter, saved, (size_t)size, 0, NULL, 0);
	if (r == 0)
		r = weir_limit_set(limiter, LIMIT);
	if (r == 0)
		r = weir_limit_cap(limiter, WEIR_LIMIT_MAX);
	return r == 0 ? weir_partitions_set(limiter, partitions, 2, NULL, 0) : r;
}

static void use_parts(void)
{
	const struct weir_call live = {.partition = weir_partition_find(limiter, "live")};
	struct weir_token token;

	CHECK(live.partition != 0);
	CHECK(weir_try_acquire_for(limiter, &live, &token) == 0);
	weir_release(limiter, &token, WEIR_SUCCESS);
}

static int create_with_parts(void)
{
	struct weir_config with = config;

	with.partitions = partitions;
	with.partition_count = 2;
	with.queue = 4;
	with.track = 8;
	return weir_limiter_create(&with, &limiter);
}

static void begin_with_parts(void)
{
	CHECK(create_with_parts() == 0);
}

/* Rates. */

static int create_rate(void)
{
	struct weir_rate_config c;

	weir_rate_config_init(&c);
	c.quotas[0] = (struct weir_quota){.units = 1, .period = 3600 * WEIR_S, .burst = 1};
	c.slot = 3600 * WEIR_S;
	c.queue = 2;
	return weir_rate_create(&c, &rate);
}

static void no_rate(void)
{
	CHECK(rate == NULL);
}

static void use_rate(void)
{
	CHECK(weir_rate_try(rate, 1) == 0);
	while (weir_rate_try(rate, 1) == 0)
		;
	CHECK(weir_rate_settle(rate, 0, 1, 0) == 0);
	CHECK(weir_rate_try(rate, 1) == 0);
}

static void end_rate(void)
{
	weir_rate_destroy(rate);
	rate = NULL;
}

/* Registries. */

static int create_registry(void)
{
	struct weir_registry_config c;

	weir_registry_config_init(&c);
	c.limiter = &config;
	c.max = 2;
	return weir_registry_create(&c, &registry);
}

static void no_registry(void)
{
	CHECK(registry == NULL);
}

static int get(const char *key)
{
	return weir_registry_get(registry, key, strlen(key), &limiter);
}

static void use_registry(void)
{
	CHECK(get("a") == 0);
	admits(limiter);
	weir_registry_put(registry, limiter);
}

static void end_registry(void)
{
	CHECK(weir_registry_destroy(registry) == 0);
	registry = NULL;
	limiter = NULL;
}

static void begin_registry(void)
{
	CHECK(create_registry() == 0);
}

/* New ones, and those for which an idle one is evicted. */
static int get_several(void)
{
	const char *const keys[] = {"a", "b", "c", "d", "a"};

	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const int r = get(keys[i]);

		if (r != 0)
			return r;
		weir_registry_put(registry, limiter);
	}
	return 0;
}

static int find(void)
{
	const int r = weir_registry_find(registry, "a", 1, &limiter);

	if (r == 0)
		weir_registry_put(registry, limiter);
	return r;
}

static void begin_full_registry(void)
{
	begin_registry();
	CHECK(get_several() == 0);
}

/* Executors. */

static enum weir_outcome task(void *arg)
{
	__atomic_add_fetch((int *)arg, 1, __ATOMIC_RELAXED);
	return WEIR_SUCCESS;
}

static int create_executor(void)
{
	struct weir_executor_config c;

	weir_executor_config_init(&c);
	c.queue = 4;
	c.stack = (size_t)1 << 18;
	tasks = 0;
	return weir_executor_create(&c, &executor);
}

static void no_executor(void)
{
	CHECK(executor == NULL);
}

static void begin_executor(void)
{
	CHECK(create_executor() == 0);
}

static int submit(void)
{
	return weir_executor_submit(executor, task, &tasks, WEIR_FOREVER);
}

static int try_submit(void)
{
	return weir_executor_try_submit(executor, task, &tasks);
}

/* The refused task is not run, and holds nothing. */
static void not_submitted(void)
{
	struct weir_executor_stats stats;

	weir_executor_stats_init(&stats);
	weir_executor_stats_take(executor, &stats);
	CHECK(stats.submitted == 0 && stats.queued == 0 && stats.running == 0);
	CHECK(stats.refused == 1);
}

static void use_executor(void)
{
	int before = tasks;

	CHECK(submit() == 0);
	CHECK(weir_executor_drain(executor, WEIR_FOREVER) == 0);
	CHECK(tasks > before);
	CHECK(weir_inflight(weir_executor_limiter(executor)) == 0);
}

static void drain_one(void)
{
	CHECK(weir_executor_drain(executor, WEIR_FOREVER) == 0);
	CHECK(tasks == 1);
	CHECK(weir_inflight(weir_executor_limiter(executor)) == 0);
}

static void end_executor(void)
{
	CHECK(weir_executor_destroy(executor) == 0);
	executor = NULL;
}

/* The gauge of the CPUs. */

static int create_cpu(void)
{
	return weir_cpu_create(NULL, &cpu);
}

/* A tree in which the process's group and the one above it are limited. */

static char root[] = "/tmp/weir-failures-XXXXXX";

static const struct {
	const char *path, *text; /* NULL: a folder */
} tree[] = {
	{"proc", NULL},
	{"proc/self", NULL},
	{"proc/self/cgroup", "1:cpu:/\n0::/a/b\n"},
	{"sys", NULL},
	{"sys/fs", NULL},
	{"sys/fs/cgroup", NULL},
	{"sys/fs/cgroup/a", NULL},
	{"sys/fs/cgroup/a/cpu.max", "50000 100000\n"},
	{"sys/fs/cgroup/a/cpu.stat", "usage_usec 7\n"},
	{"sys/fs/cgroup/a/b", NULL},
	{"sys/fs/cgroup/a/b/cpu.max", "80000 100000\n"},
};

#define TREE (sizeof(tree) / sizeof(tree[0]))

static void begin_tree(void)
{
	char path[128];

	strcpy(root + strlen(root) - 6, "XXXXXX");
	CHECK(mkdtemp(root) != NULL);
	for (size_t i = 0; i < TREE; i++) {
		FILE *file;

		(void)snprintf(path, sizeof(path), "%s/%s", root, tree[i].path);
		if (tree[i].text == NULL) {
			CHECK(mkdir(path, 0700) == 0);
			continue;
		}
		file = fopen(path, "w");
		CHECK(file != NULL && fputs(tree[i].text, file) >= 0 && fclose(file) == 0);
	}
}

static int create_cpu_of_group(void)
{
	struct weir_cpu_config c;

	weir_cpu_config_init(&c);
	c.root = root;
	return weir_cpu_create(&c, &cpu);
}

static void end_tree(void)
{
	char path[128];

	weir_cpu_destroy(cpu);
	cpu = NULL;
	for (size_t i = TREE; i-- > 0;) {
		(void)snprintf(path, sizeof(path), "%s/%s", root, tree[i].path);
		CHECK(remove(path) == 0);
	}
	CHECK(rmdir(root) == 0);
}

static void no_cpu(void)
{
	CHECK(cpu == NULL);
}

static void use_cpu(void)
{
	CHECK(weir_cpu_gauge(cpu)->read(weir_cpu_gauge(cpu)) >= 0);
}

static void end_cpu(void)
{
	weir_cpu_destroy(cpu);
	cpu = NULL;
}

/* Metrics. */

static int create_metrics(void)
{
	return weir_metrics_create(&metrics);
}

static void no_metrics(void)
{
	CHECK(metrics == NULL);
}

static size_t text_length(void)
{
	return weir_metrics_text(metrics, WEIR_OPENMETRICS, NULL, 0);
}

static void end_metrics(void)
{
	weir_metrics_destroy(metrics);
	metrics = NULL;
	end_limiter();
	end_rate();
	if (registry != NULL)
		end_registry();
}

static const struct weir_label labels[] = {
	{.name = "upstream", .value = "a"},
	{.name = "zone", .value = "\"b\""},
};

static int add_limiter(void)
{
	return weir_metrics_add(metrics, limiter, labels, 2);
}

static int add_rate(void)
{
	return weir_metrics_add_rate(metrics, rate, labels, 2);
}

static const struct weir_metric own_metric = {
	.kind = WEIR_METRIC_COUNTER,
	.name = "own_jobs",
	.help = "Jobs.",
};

static int add_value(void)
{
	return weir_metrics_add_value(metrics, &own_metric, 1, labels, 2);
}

static int add_registry(void)
{
	return weir_metrics_add_registry(metrics, registry, "key", labels, 2);
}

/* A set with one limiter in it, to which others are added. */
static void begin_metrics(void)
{
	begin_with_parts();
	CHECK(create_rate() == 0);
	CHECK(create_metrics() == 0);
	CHECK(weir_metrics_add(metrics, limiter, NULL, 0) == 0);
	length = text_length();
}

static void begin_metrics_of_registry(void)
{
	begin_full_registry();
	CHECK(create_metrics() == 0);
	length = text_length();
	limiter = NULL;
}

static void metrics_unchanged(void)
{
	CHECK(text_length() == length);
}

static void use_metrics(void)
{
	CHECK(text_length() > length);
}

static int write_metrics(void)
{
	static char text[1 << 16];

	return weir_metrics_text(metrics, WEIR_PROMETHEUS, text, sizeof(text)) > 0 ? 0 : -EINVAL;
}

/* The limiters of a registry that were added stay, so they are taken to a set of their own. */
static void metrics_anew(void)
{
	weir_metrics_destroy(metrics);
	CHECK(create_metrics() == 0);
}

/* Shared limiters in a block of the caller's. */

static int init_block(void)
{
	why[0] = '\0';
	return weir_shm_init(block, block_size, &config, MEMBERS, why, sizeof(why));
}

static void is_explained(void)
{
	CHECK(why[0] != '\0' && why[strlen(why) - 1] == '.');
}

static void begin_block(void)
{
	block_size = weir_shm_size(&config, MEMBERS);
	block = mmap(NULL, block_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(block != MAP_FAILED);
}

static void begin_limiter_in_block(void)
{
	begin_block();
	CHECK(init_block() == 0);
}

static int attach(void)
{
	why[0] = '\0';
	return weir_shm_attach(block, block_size, &config, &limiter, why, sizeof(why));
}

static int observe(void)
{
	why[0] = '\0';
	return weir_shm_observe(block, block_size, &limiter, why, sizeof(why));
}

static void no_shared(void)
{
	is_explained();
	CHECK(limiter == NULL);
}

/* Nothing of a failed attempt takes a lease. */
static void is_attached_once(void)
{
	struct weir_shm_info info;

	weir_shm_info_init(&info);
	CHECK(weir_shm_info_take(limiter, &info) == 0);
	CHECK(info.attached == 1);
}

static void use_shared(void)
{
	is_attached_once();
	admits(limiter);
}

static void use_observer(void)
{
	struct weir_token token;

	CHECK(weir_limit(limiter) == LIMIT);
	CHECK(weir_try_acquire(limiter, &token) == -EACCES);
}

static void use_block(void)
{
	CHECK(attach() == 0);
	use_shared();
}

static void end_block(void)
{
	weir_shm_detach(limiter);
	limiter = NULL;
	CHECK(munmap(block, block_size) == 0);
}

/* Shared limiters with a name. */

static int open_shared(void)
{
	why[0] = '\0';
	return weir_shm_open(name, 0600, &config, MEMBERS, &limiter, why, sizeof(why));
}

static int open_shared_of(void)
{
	why[0] = '\0';
	return weir_shm_open_of(name, (uint32_t)getuid(), 0600, &config, MEMBERS, &limiter, why,
				sizeof(why));
}

static int open_observer(void)
{
	why[0] = '\0';
	return weir_shm_open_observer(name, &limiter, why, sizeof(why));
}

static int open_observer_of(void)
{
	why[0] = '\0';
	return weir_shm_open_observer_of(name, (uint32_t)getuid(), &limiter, why, sizeof(why));
}

/* There is no file of a failed attempt, unless the limiter in it is complete. */
static void no_shared_file(void)
{
	struct weir_limiter *l;
	char pattern[64];
	glob_t found;

	no_shared();
	(void)snprintf(pattern, sizeof(pattern), "/dev/shm/.weir-%d-*", (int)getpid());
	CHECK(glob(pattern, 0, NULL, &found) == GLOB_NOMATCH);
	globfree(&found);
	if (weir_shm_open_observer(name, &l, NULL, 0) != 0)
		CHECK(shm_unlink(name) != 0 && errno == ENOENT);
	else
		weir_shm_detach(l);
}

static void end_shared(void)
{
	weir_shm_detach(limiter);
	limiter = NULL;
	CHECK(shm_unlink(name) == 0);
}

/* One that another process could have made: so it is open already. */
static void begin_shared(void)
{
	CHECK(open_shared() == 0);
	other = limiter;
	limiter = NULL;
}

static void end_other(void)
{
	end_shared();
	weir_shm_detach(other);
}

static void use_second(void)
{
	struct weir_shm_info info;

	weir_shm_info_init(&info);
	CHECK(weir_shm_info_take(limiter, &info) == 0);
	CHECK(info.attached == 2);
	admits(limiter);
}

static bool count_name(void *arg, const char *at)
{
	*(int *)arg += strcmp(at, name) == 0;
	return true;
}

static bool count_file(void *arg, const struct weir_shm_file *file)
{
	*(int *)arg += strcmp(file->name, name) == 0;
	return true;
}

/* A visit that says it has succeeded has seen the name. */
static int visit_names(void)
{
	int seen = 0, r = weir_shm_names_visit(count_name, &seen);

	CHECK(r < 0 || seen == 1);
	return r < 0 ? r : 0;
}

static int visit_files(void)
{
	int seen = 0, r = weir_shm_files_visit(count_file, &seen);

	CHECK(r < 0 || seen == 1);
	return r < 0 ? r : 0;
}

/* No process has that number. */
static int evict(void)
{
	const int r = weir_shm_evict(other, MEMBERS, NULL);

	return r == -EINVAL ? 0 : r;
}

/* It does not find its own process dead, whatever fails. */
static int reap(void)
{
	struct weir_shm_reaped reaped;
	const int r = weir_shm_reap(other, &reaped);

	CHECK(reaped.processes == 0 && reaped.permits == 0);
	return r;
}

static const struct failure_case cases[] = {
	{"weir_limiter_create", NULL, NULL, create_limiter, no_limiter, use_limiter, end_limiter},
	{"weir_limiter_create", "with partitions, a queue and tracked tokens", NULL,
	 create_with_parts, no_limiter, use_parts, end_limiter},
	{"weir_try_acquire weir_release weir_limiter_save weir_limiter_load weir_limit_set"
	 " weir_limit_cap weir_partitions_set",
	 NULL, begin_with_parts, change_limiter, NULL, use_parts, end_limiter, .quiet = true},
	{"weir_limiter_init", NULL, NULL, init_limiter, NULL, use_limiter, forget_limiter,
	 .quiet = true},
	{"weir_rate_create", NULL, NULL, create_rate, no_rate, use_rate, end_rate},
	{"weir_registry_create", NULL, NULL, create_registry, no_registry, use_registry,
	 end_registry},
	{"weir_registry_get weir_registry_put", NULL, begin_registry, get_several, no_limiter,
	 use_registry, end_registry, .quiet = true},
	{"weir_registry_find", NULL, begin_full_registry, find, NULL, use_registry, end_registry,
	 .quiet = true},
	{"weir_executor_create", NULL, NULL, create_executor, no_executor, use_executor,
	 end_executor},
	{"weir_executor_submit",
	 NULL,
	 begin_executor,
	 submit,
	 not_submitted,
	 drain_one,
	 end_executor,
	 {{FAULT_BIT(FAULT_THREAD), -ENOMEM}}},
	{"weir_executor_try_submit",
	 NULL,
	 begin_executor,
	 try_submit,
	 not_submitted,
	 drain_one,
	 end_executor,
	 {{FAULT_BIT(FAULT_THREAD), -ENOMEM}}},
	/* stdio reads without a buffer where there is no memory for one. */
	{"weir_cpu_create",
	 NULL,
	 NULL,
	 create_cpu,
	 no_cpu,
	 use_cpu,
	 end_cpu,
	 {{FAULT_BIT(FAULT_MEMORY), 0}}},
	{"weir_cpu_create",
	 "with a limited group",
	 begin_tree,
	 create_cpu_of_group,
	 no_cpu,
	 use_cpu,
	 end_tree,
	 {{FAULT_BIT(FAULT_MEMORY), 0}}},
	{"weir_metrics_create", NULL, NULL, create_metrics, no_metrics, NULL, end_metrics},
	{"weir_metrics_add", NULL, begin_metrics, add_limiter, metrics_unchanged, use_metrics,
	 end_metrics},
	{"weir_metrics_add_rate", NULL, begin_metrics, add_rate, metrics_unchanged, use_metrics,
	 end_metrics},
	{"weir_metrics_add_value", NULL, begin_metrics, add_value, metrics_unchanged, use_metrics,
	 end_metrics},
	{"weir_metrics_add_registry", NULL, begin_metrics_of_registry, add_registry, metrics_anew,
	 use_metrics, end_metrics},
	{"weir_metrics_text weir_metrics_write", NULL, begin_metrics, write_metrics, NULL, NULL,
	 end_metrics, .quiet = true},
	{"weir_shm_init", NULL, begin_block, init_block, is_explained, use_block, end_block},
	{"weir_shm_attach",
	 NULL,
	 begin_limiter_in_block,
	 attach,
	 no_shared,
	 use_shared,
	 end_block,
	 {{FAULT_BIT(FAULT_ADVISE), -ENOTSUP}}},
	{"weir_shm_observe",
	 NULL,
	 begin_limiter_in_block,
	 observe,
	 no_shared,
	 use_observer,
	 end_block,
	 {{FAULT_BIT(FAULT_ADVISE), -ENOTSUP}}},
	/* Without an unnamed file, one with a name is made. */
	{"weir_shm_open",
	 "a new one",
	 NULL,
	 open_shared,
	 no_shared_file,
	 use_shared,
	 end_shared,
	 {{FAULT_BIT(FAULT_ADVISE), -ENOTSUP}, {FAULT_BIT(FAULT_OPEN), 0}}},
	{"weir_shm_open_of",
	 "a new one",
	 NULL,
	 open_shared_of,
	 no_shared_file,
	 use_shared,
	 end_shared,
	 {{FAULT_BIT(FAULT_ADVISE), -ENOTSUP}, {FAULT_BIT(FAULT_OPEN), 0}}},
	{"weir_shm_open",
	 "an existing one",
	 begin_shared,
	 open_shared,
	 no_shared,
	 use_second,
	 end_other,
	 {{FAULT_BIT(FAULT_ADVISE), -ENOTSUP}}},
	{"weir_shm_open_of",
	 "an existing one",
	 begin_shared,
	 open_shared_of,
	 no_shared,
	 use_second,
	 end_other,
	 {{FAULT_BIT(FAULT_ADVISE), -ENOTSUP}}},
	{"weir_shm_open_observer",
	 NULL,
	 begin_shared,
	 open_observer,
	 no_shared,
	 use_observer,
	 end_other,
	 {{FAULT_BIT(FAULT_ADVISE), -ENOTSUP}}},
	{"weir_shm_open_observer_of",
	 NULL,
	 begin_shared,
	 open_observer_of,
	 no_shared,
	 use_observer,
	 end_other,
	 {{FAULT_BIT(FAULT_ADVISE), -ENOTSUP}}},
	{"weir_shm_names_visit", NULL, begin_shared, visit_names, NULL, NULL, end_other},
	{"weir_shm_files_visit", NULL, begin_shared, visit_files, NULL, NULL, end_other},
	/* In doubt a process is alive. */
	{"weir_shm_reap",
	 NULL,
	 begin_shared,
	 reap,
	 NULL,
	 NULL,
	 end_other,
	 {{FAULT_BIT(FAULT_OPEN) | FAULT_BIT(FAULT_READ), 0}}},
	{"weir_shm_evict", NULL, begin_shared, evict, NULL, NULL, end_other, .quiet = true},
};

int main(int argc, char **argv)
{
	static const struct weir_settable_config three = {.initial = LIMIT};

	weir_config_init(&config);
	config.limit = &weir_settable;
	config.limit_config = &three;
	config.limit_config_size = sizeof(three);
	snprintf(name, sizeof(name), "/weir-failures-%d", (int)getpid());
	return cases_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
