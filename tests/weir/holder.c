/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * holder.c - a process that joins a shared limiter and carries out commands from standard input.
 *
 *	weir-holder NAME LIMIT [PARTITION=SHARE...]
 *
 * If LIMIT is "-", it joins an existing limiter; otherwise it creates NAME, and removes it at the
 * end of the input. A line is one of
 *
 *	acquire N [PARTITION]	acquire N permits, and hold them; refusals are counted
 *	release N		give the latest back, as served
 *	drop N			the same, as dropped
 *	calls N			make N calls of 1 ms each, one after the other
 *	serve			go on with such calls until the next line
 *	again			create another limiter under the same name, and leave the old one
 *
 * Each is answered with "done" when it has been carried out.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

#define TOKENS_MAX 1000
#define MEMBERS    8

struct holder {
	const char *name;
	struct weir_config config;
	_Alignas(max_align_t) char limit_config[WEIR_LIMIT_CONFIG_MAX];
	struct weir_partition partitions[WEIR_PARTITIONS_MAX];
	struct weir_limiter *limiter;
	struct weir_token tokens[TOKENS_MAX];
	unsigned held;
	bool joins;
};

static void die(const char *why)
{
	fprintf(stderr, "weir-holder: %s\n", why);
	exit(EXIT_FAILURE);
}

static void configure(struct holder *h, const char *limit, char **partitions)
{
	char why[200];

	weir_config_init(&h->config);
	if (weir_limit_from_text(limit, &h->config.limit, h->limit_config, why, sizeof(why)) != 0)
		die(why);
	h->config.limit_config = h->limit_config;
	h->config.limit_config_size = h->config.limit->config_size;
	h->config.limit_max = 200;
	h->config.queue = 10;
	h->config.partitions = h->partitions;
	for (; *partitions != NULL; partitions++) {
		struct weir_partition *p = &h->partitions[h->config.partition_count++];
		char *equals = strchr(*partitions, '=');

		if (equals == NULL)
			die("a partition is NAME=SHARE");
		*equals = '\0';
		p->name = *partitions;
		p->share = strtod(equals + 1, NULL);
	}
}

static void join(struct holder *h)
{
	char why[200];

	if (weir_shm_open(h->name, 0600, h->joins ? NULL : &h->config, MEMBERS, &h->limiter, why,
			  sizeof(why)) != 0)
		die(why);
}

static void acquire(struct holder *h, unsigned count, const char *partition)
{
	const struct weir_call call = {.partition = weir_partition_find(h->limiter, partition)};

	for (; count > 0 && h->held < TOKENS_MAX; count--)
		if (weir_try_acquire_for(h->limiter, &call, &h->tokens[h->held]) == 0)
			h->held++;
}

static void release(struct holder *h, unsigned count, enum weir_outcome outcome)
{
	for (; count > 0 && h->held > 0; count--)
		weir_release(h->limiter, &h->tokens[--h->held], outcome);
}

static void call(struct holder *h)
{
	struct weir_token token;

	const int refused = weir_try_acquire(h->limiter, &token);

	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	if (refused == 0)
		weir_release(h->limiter, &token, WEIR_SUCCESS);
}

static void serve(struct holder *h)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	while (poll(&input, 1, 0) == 0)
		call(h);
}

/* There is always a limiter of that name. */
static void make_again(struct holder *h)
{
	struct weir_limiter *old = h->limiter;
	const char *name = h->name;
	char other[300], from[320], to[320];

	snprintf(other, sizeof(other), "%s-again", name);
	snprintf(from, sizeof(from), "/dev/shm%s", other);
	snprintf(to, sizeof(to), "/dev/shm%s", name);
	h->name = other;
	join(h);
	h->name = name;
	h->held = 0;
	if (rename(from, to) != 0)
		die("it cannot be renamed");
	weir_shm_detach(old);
}

static void obey(struct holder *h, const char *line)
{
	char what[16] = "", partition[64] = "";
	unsigned count = 0;

	sscanf(line, "%15s %u %63s", what, &count, partition);
	if (strcmp(what, "acquire") == 0)
		acquire(h, count, partition);
	else if (strcmp(what, "release") == 0)
		release(h, count, WEIR_SUCCESS);
	else if (strcmp(what, "drop") == 0)
		release(h, count, WEIR_DROPPED);
	else if (strcmp(what, "again") == 0)
		make_again(h);
	else if (strcmp(what, "calls") == 0)
		for (; count > 0; count--)
			call(h);
	puts("done");
	if (strcmp(what, "serve") == 0)
		serve(h);
}

int main(int argc, char **argv)
{
	static struct holder holder;
	char line[200];

	if (argc < 3)
		die("usage: weir-holder NAME LIMIT [PARTITION=SHARE...]");
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	holder.name = argv[1];
	holder.joins = strcmp(argv[2], "-") == 0;
	if (!holder.joins)
		configure(&holder, argv[2], argv + 3);
	join(&holder);
	puts("done");
	while (fgets(line, sizeof(line), stdin) != NULL)
		obey(&holder, line);
	weir_shm_detach(holder.limiter);
	if (!holder.joins)
		shm_unlink(holder.name);
	return EXIT_SUCCESS;
}
