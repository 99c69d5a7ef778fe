/*
 * The connection to a Redis server, and commands.
 */
#ifndef WEIR_FLEET_REDIS_LINK_H
#define WEIR_FLEET_REDIS_LINK_H

#include <hiredis/hiredis.h>

#include "fleet/store/store.h"

/* Words of a command: those of all checks and writes, and of the script. */
#define WORDS_MAX (3 * 2 * WEIR_STORE_ROWS_MAX + 16)

#define DRAW_SIZE 33 /* of 128 bits in text */

/* Result of a question: the server's store is not the known one, and is known now. */
#define REDIS_OTHER (-EREMCHG)

struct redis {
	struct weir_store store;
	struct address address;
	char base[WEIR_STORE_KEY_MAX + 16]; /* "{name}:store" */
	weir_dur timeout;
	redisContext *context; /* NULL: there is no connection */
	char script[64];       /* its digest */
	char run[64];          /* the server's */
	bool keeps;            /* it is set up to keep what it acknowledges, as far as is known */
	/* The store there: its incarnation ("": not known yet), and the highest version seen of it. */
	char incarnation[DRAW_SIZE];
	uint64_t seen;
	struct weir_store_caps caps;
	char note[WHY_SIZE];
	char why[WHY_SIZE];
};

/* A command as it is put together. Numbers are in text of its own. */
struct redis_command {
	const char *word[WORDS_MAX];
	size_t size[WORDS_MAX];
	int words;
	char text[2 * WEIR_STORE_ROWS_MAX + 8][24];
	int texts;
	char draw[DRAW_SIZE];
};

/* Put a word, some bytes, or a number in a command. */
void redis_add(struct redis_command *command, const char *word);
void redis_add_bytes(struct redis_command *command, const void *bytes, size_t size);
void redis_add_number(struct redis_command *command, const char *format, uint64_t number);

/* Begin a command for the script. 0; -EIO and a sentence: there are no random numbers. */
int redis_script_command(struct redis *redis, const char *verb, struct redis_command *command);

/* Take up an answer of "hello" or "other": from now on this is the store. */
int redis_adopt(struct redis *redis, const redisReply *reply);

/* Parse a whole number. */
bool redis_number(const redisReply *reply, uint64_t *number);

/* Be connected, and know the server and its store. 0, or a negative errno and a sentence. */
int redis_connect(struct redis *redis);

/* End the connection, so that no answer of it can come any more. */
void redis_drop(struct redis *redis);

/*
 * Ask, and have an answer that is no error. Else a negative errno and a sentence, and nothing to
 * free.
 * -ENOENT: the script is not there, so nothing has happened.
 */
int redis_ask(struct redis *redis, const struct redis_command *command, redisReply **reply);

/* Ask two at once: both have such an answer, or the first error of theirs. */
int redis_ask_both(struct redis *redis, const struct redis_command *commands, redisReply **replies);

/* Whether it is text that C can read. */
bool redis_is_text(const redisReply *reply);

#endif
