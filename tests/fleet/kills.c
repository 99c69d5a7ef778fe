/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kills TIMES: processes that share a store in memory, and are killed at any instruction.
 *
 * Every commit adds one to two rows and writes a third one, so large that there is time to die in
 * the middle. A reader always sees both rows with the same value, never a lower one than before;
 * and no process waits for a dead one.
 */

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store.h>

#include "../stress/check.h"

#define LARGE    20000
#define CHILDREN 2

struct seen {
	uint64_t x, y, version;
	unsigned rows;
};

static bool see(void *arg, const struct weir_store_row *row)
{
	struct seen *seen = arg;
	uint64_t value;

	seen->rows++;
	if (row->size != sizeof(value))
		return true;
	memcpy(&value, row->value, sizeof(value));
	if (strcmp(row->key, "k/x") == 0)
		seen->x = value;
	else
		seen->y = value;
	seen->version = row->version;
	return true;
}

static struct seen look(struct weir_store *store)
{
	const char *prefix = "k/";
	struct seen seen = {.x = 0};

	CHECK(weir_store_read(store, &prefix, 1, see, &seen, NULL) == 0);
	CHECK(seen.x == seen.y && (seen.rows == 0 || seen.rows == 3));
	return seen;
}

static struct weir_store *open_store(const char *address)
{
	struct weir_store_config config;
	struct weir_store *store;

	weir_store_config_init(&config);
	config.address = address;
	config.shm_bytes = 256 * 1024;
	config.timeout = 60 * WEIR_S;
	CHECK(weir_store_open(&config, &store, NULL, 0) == 0);
	return store;
}

static void add(struct weir_store *store)
{
	static const char large[LARGE];
	const struct seen seen = look(store);
	const uint64_t next = seen.x + 1;
	const struct weir_store_check check = {
		"k/x", seen.rows > 0 ? WEIR_STORE_CHECK_VERSION : WEIR_STORE_CHECK_ABSENT,
		seen.version};
	const struct weir_store_write writes[] = {
		{"k/x", WEIR_STORE_WRITE_PUT, &next, sizeof(next)},
		{"k/large", WEIR_STORE_WRITE_PUT, large, LARGE},
		{"k/y", WEIR_STORE_WRITE_PUT, &next, sizeof(next)},
	};
	const int r = weir_store_commit(store, 0, &check, 1, writes, 3, NULL);

	CHECK(r == 0 || r == -EAGAIN);
}

static pid_t start(const char *address)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		struct weir_store *store;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		store = open_store(address);
		for (;;)
			add(store);
	}
	return pid;
}

int main(int argc, char **argv)
{
	const unsigned times = argc == 2 ? (unsigned)atoi(argv[1]) : 0;
	uint64_t chance = 88172645463325252u, last = 0;
	struct weir_store *store;
	pid_t children[CHILDREN];
	char address[64];

	CHECK(times > 0);
	(void)snprintf(address, sizeof(address), "shm:/weir-kills-%d", (int)getpid());
	(void)shm_unlink(address + 4);
	store = open_store(address);
	for (unsigned i = 0; i < CHILDREN; i++)
		children[i] = start(address);
	for (unsigned i = 0; i < times; i++) {
		pid_t *child = &children[i % CHILDREN];
		struct seen seen;

		usleep((useconds_t)(draw(&chance) % 1500));
		kill(*child, SIGKILL);
		CHECK(waitpid(*child, NULL, 0) == *child);
		seen = look(store);
		CHECK(seen.x >= last);
		last = seen.x;
		*child = start(address);
	}
	while (look(store).x == last)
		usleep(1000);
	for (unsigned i = 0; i < CHILDREN; i++) {
		kill(children[i], SIGKILL);
		CHECK(waitpid(children[i], NULL, 0) == children[i]);
	}
	add(store);
	weir_store_close(store);
	CHECK(shm_unlink(address + 4) == 0);
	printf("%u deaths, %llu commits\n", times, (unsigned long long)last);
	return 0;
}
