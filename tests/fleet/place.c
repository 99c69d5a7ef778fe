#include "place.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../stress/check.h"

void place_begin(struct place *p, const char *kind)
{
	*p = (struct place){.kind = kind, .timed = strcmp(kind, "memory") == 0};
	if (strcmp(kind, "redis") == 0 || strcmp(kind, "etcd") == 0) {
		server_start(&p->server, kind[0] == 'e' ? SERVER_ETCD : SERVER_REDIS_DURABLE);
		p->remote = true;
		(void)snprintf(p->address, sizeof(p->address), "%s://127.0.0.1:%u", kind,
			       p->server.port);
	} else if (strcmp(kind, "shm") == 0) {
		(void)snprintf(p->address, sizeof(p->address), "shm:/weir-place-%d", (int)getpid());
	} else {
		CHECK(p->timed);
	}
}

void place_end(struct place *p)
{
	if (p->remote)
		server_end(&p->server);
}

struct weir_store *place_open(struct place *p, const struct weir_clock *clock)
{
	struct weir_store_config config;
	struct weir_store *store;
	unsigned tries = 0;
	char name[32], why[256];

	weir_store_config_init(&config);
	config.timeout = 10 * WEIR_S;
	(void)snprintf(name, sizeof(name), "place-%u", p->stores++);
	if (p->timed)
		config.clock = clock;
	else
		config.address = p->address;
	if (p->remote)
		config.name = name;
	/* A server that listens need not be ready. */
	while (weir_store_open(&config, &store, why, sizeof(why)) != 0) {
		if (++tries == 50) {
			fprintf(stderr, "%s\n", why);
			abort();
		}
		sleep_ms(100);
	}
	/* Who has it open goes on with it; the next one makes another. */
	if (!p->timed && !p->remote)
		CHECK(shm_unlink(p->address + 4) == 0);
	return store;
}
