/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kills TIMES: processes that share a store in memory, and are killed or stopped at any instruction.
 *
 * Every commit adds one to two rows and writes a third one, so large that there is time to die in
 * the middle. A reader always sees both rows with the same value, never a lower one than before;
 * no process waits for a dead one, and none waits longer than its timeout for a stopped one.
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
#define PATIENT  (60 * WEIR_S)

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

static int try_look(struct weir_store *store, struct seen *seen)
{
	const char *prefix = "k/";
	int r;

	*seen = (struct seen){.x = 0};
	r = weir_store_read(store, &prefix, 1, see, seen, NULL);
	CHECK(r != 0 || (seen->x == seen->y && (seen->rows == 0 || seen->rows == 3)));
	return r;
}

static struct seen look(struct weir_store *store)
{
	struct seen seen;

	CHECK(try_look(store, &seen) == 0);
	return seen;
}

static struct weir_store *open_store(const char *address, weir_dur timeout)
{
	struct weir_store_config config;
	struct weir_store *store;

	weir_store_config_init(&config);
	config.address = address;
	config.shm_bytes = 256 * 1024;
	config.timeout = timeout;
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
		store = open_store(address, PATIENT);
		for (;;)
			add(store);
	}
	return pid;
}

/*
 * One child is stopped, for a moment or until readings have timed out; the other one may be killed
 * meanwhile. Returns the number of readings that timed out, as the stopped one had the lock.
 */
static unsigned stop(pid_t stopped, pid_t killed, struct weir_store *hasty, uint64_t *chance,
		     uint64_t last)
{
	const bool kills = draw(chance) % 2 == 0;
	unsigned late = 0;
	struct seen seen;

	CHECK(kill(stopped, SIGSTOP) == 0);
	CHECK(waitpid(stopped, NULL, WUNTRACED) == stopped);
	for (uint64_t i = draw(chance) % 3; i > 0; i--) {
		const int r = try_look(hasty, &seen);

		CHECK(r == -EIO || (r == 0 && seen.x >= last));
		late += r == -EIO;
	}
	if (kills) {
		kill(killed, SIGKILL);
		CHECK(waitpid(killed, NULL, 0) == killed);
	}
	CHECK(kill(stopped, SIGCONT) == 0);
	if (!kills) {
		kill(killed, SIGKILL);
		CHECK(waitpid(killed, NULL, 0) == killed);
	}
	return late;
}

int main(int argc, char **argv)
{
	const unsigned times = argc == 2 ? (unsigned)atoi(argv[1]) : 0;
	uint64_t chance = 88172645463325252u, last = 0;
	struct weir_store *store, *hasty;
	unsigned late = 0;
	pid_t children[CHILDREN];
	char address[64];

	CHECK(times > 0);
	(void)snprintf(address, sizeof(address), "shm:/weir-kills-%d", (int)getpid());
	(void)shm_unlink(address + 4);
	store = open_store(address, PATIENT);
	hasty = open_store(address, 2 * WEIR_MS);
	for (unsigned i = 0; i < CHILDREN; i++)
		children[i] = start(address);
	for (unsigned i = 0; i < times; i++) {
		pid_t *child = &children[i % CHILDREN];
		struct seen seen;

		usleep((useconds_t)(draw(&chance) % 1500));
		late += stop(children[(i + 1) % CHILDREN], *child, hasty, &chance, last);
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
	weir_store_close(hasty);
	weir_store_close(store);
	CHECK(shm_unlink(address + 4) == 0);
	printf("%u deaths, %llu commits, %u readings behind a stopped process\n", times,
	       (unsigned long long)last, late);
	return 0;
}
