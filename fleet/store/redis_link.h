/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection to a Redis server, and commands. */
#ifndef WEIR_FLEET_REDIS_LINK_H
#define WEIR_FLEET_REDIS_LINK_H

#include <hiredis/hiredis.h>

#include "fleet/store/store.h"

/* Words of a command: those of all checks and writes, and of the script. */
#define WORDS_MAX (3 * 2 * WEIR_STORE_ROWS_MAX + 16)

#define DRAW_SIZE 33 /* bytes of 128 bits in hexadecimal text */

/* Result of a request: the server's store was not the known one, and is known now. */
#define REDIS_OTHER (-EREMCHG)

struct redis {
	struct weir_store store;
	struct address address;             /* its hosts are Sentinels if there is a service */
	char service[256];                  /* whose master Sentinels know; "": none */
	unsigned sentinel;                  /* that is asked first */
	char base[WEIR_STORE_KEY_MAX + 16]; /* "{name}:store" */
	weir_dur timeout;
	redisContext *context; /* NULL: not connected */
	char script[64];       /* SHA1 of the script */
	char run[64];          /* the server's run_id */
	bool keeps;            /* as far as is known, the server keeps what it acknowledges */
	/* The store: its incarnation ("": not known yet), and the highest version seen of it. */
	char incarnation[DRAW_SIZE];
	uint64_t seen;
	struct weir_store_caps caps;
	char note[WHY_SIZE];
	char why[WHY_SIZE];
};

/* A command under construction. text holds its numbers. */
struct redis_command {
	const char *word[WORDS_MAX];
	size_t size[WORDS_MAX];
	int words;
	char text[2 * WEIR_STORE_ROWS_MAX + 8][24];
	int texts;
	char draw[DRAW_SIZE];
};

/* Append a word, bytes, or a number to a command. */
void redis_add(struct redis_command *command, const char *word);
void redis_add_bytes(struct redis_command *command, const void *bytes, size_t size);
void redis_add_number(struct redis_command *command, const char *format, uint64_t number);

/* Begin a command for the script. Returns 0, or -EIO and a sentence: getrandom() failed. */
int redis_script_command(struct redis *redis, const char *verb, struct redis_command *command);

/* Process an answer to "hello", or an answer "other": that is the known store from now on. */
int redis_adopt(struct redis *redis, const redisReply *reply);

/* Parse a whole number. */
bool redis_number(const redisReply *reply, uint64_t *number);

/*
 * Connect if necessary, and identify the server and its store. Returns 0, or a negative errno and a
 * sentence.
 */
int redis_connect(struct redis *redis);

/* Connect to the server and log in, and no more. It is a master. Returns the same. */
int redis_dial(struct redis *redis);

/* The timeout, as hiredis has it. */
struct timeval redis_wait(const struct redis *redis);

/*
 * Ask the Sentinels for the master of the service (redis_sentinel.c). Returns 0, or -EIO or -ENOMEM
 * and a sentence.
 */
int redis_find_master(struct redis *redis, struct address_host *master);

/* Close the connection, so that no late answer can arrive. */
void redis_drop(struct redis *redis);

/*
 * Send a command, and receive an answer that is not an error. Otherwise returns a negative errno
 * and a sentence, with nothing to free.
 * -ENOENT: the script is not loaded, so nothing has happened
 */
int redis_ask(struct redis *redis, const struct redis_command *command, redisReply **reply);

/* Send two commands at once. Returns 0 and both answers, or the first error. */
int redis_ask_both(struct redis *redis, const struct redis_command *commands, redisReply **replies);

/* Whether the reply is a string. */
bool redis_is_text(const redisReply *reply);

/* Map an error reply to an errno, and set the sentence. */
int redis_error_of(struct redis *redis, const redisReply *reply);

/* The operations of watches (redis_watch.c). */
int redis_watch_open(struct weir_store *self, const char *const *prefixes, size_t count,
		     void **watch, char *why);
int redis_watch_wait(struct weir_store *self, void *watch, weir_dur timeout,
		     struct weir_store_change *change);
void redis_watch_wake(struct weir_store *self, void *watch);
void redis_watch_close(struct weir_store *self, void *watch);

#endif
