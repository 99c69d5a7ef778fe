/*
 * What a fleet writes down of a limit, as text that operators can read too.
 *
 * LIMIT/cfg       what the limit is: stays
 * LIMIT/m/ID      a member, what it wants, with what weight, and who it is: gone with its session
 * LIMIT/led       who holds how much: stays. A line counts as long as the member's row is there,
 *                 made by the commit that the line names as its fence
 * LIMIT/drain/ID  that member is to hold nothing: stays (drain.h)
 * LIMIT/up        of a region: what it holds of a limit in another store, and for how long: stays
 * LIMIT/carrier   of a region: who writes that: gone with its session
 */
#ifndef WEIR_FLEET_LEDGER_H
#define WEIR_FLEET_LEDGER_H

#include "fleet/protocol/allot.h"

#define LABEL_ROOM (WEIR_FLEET_LABEL_MAX + 1)

#define THROTTLE_NONE 1000000u /* parts of a million of the capacity that are used */

struct limit_record {
	uint64_t capacity;
	enum weir_allotment allotment;
	uint64_t reserved;
	uint32_t members;
	uint64_t lease; /* milliseconds */
};

struct member_record {
	uint64_t wants;
	uint32_t weight;
	int32_t priority;
	char label[LABEL_ROOM];
};

/*
 * What a region holds above (region.c). It is sure for so long from a moment on that was not before
 * the commit of that number.
 */
struct up_record {
	uint64_t carried;
	uint64_t tick;
	uint64_t left;        /* microseconds */
	uint64_t id, session; /* of the region above, for whoever carries it next */
};

/* What parts are, the same for all of their members; capacity and factor: 0 for work. */
struct parts_record {
	uint32_t count;
	uint64_t capacity, factor;
	uint64_t lease; /* milliseconds: the longest of a member */
};

struct ledger_line {
	uint64_t id, fence, grant;
};

struct ledger {
	uint32_t throttle;
	struct ledger_line *lines;
	size_t count, room;
};

#define RECORD_SIZE 160 /* of the text of a limit or a member */
#define KEY_ROOM    (WEIR_SHARE_NAME_MAX + 32)

/* Whether it is 1 to most letters, digits and -_.:@. NULL is not. */
bool is_word(const char *text, size_t most);

/* HOST:PID. What no label has of the host becomes -, and what is too long of it is left out. */
void label_of_process(const char *host, long pid, char label[LABEL_ROOM]);

/* The key of a row of a member: of kind "m" or "drain". */
void member_key(const char *limit, const char *kind, uint64_t id, char key[KEY_ROOM]);

/* The length of the text. */
size_t limit_print(const struct limit_record *record, char text[RECORD_SIZE]);
size_t member_print(const struct member_record *record, char text[RECORD_SIZE]);
size_t up_print(const struct up_record *record, char text[RECORD_SIZE]);
size_t worker_print(const char *who, char text[RECORD_SIZE]); /* of parts */
size_t parts_print(const struct parts_record *p, char text[RECORD_SIZE]);

/* False: it is no such text. */
bool limit_parse(const char *text, size_t size, struct limit_record *record);
bool member_parse(const char *text, size_t size, struct member_record *record);
bool up_parse(const char *text, size_t size, struct up_record *record);
bool worker_parse(const char *text, size_t size, char who[LABEL_ROOM]);
bool parts_parse(const char *text, size_t size, struct parts_record *record);

/* The text is freed by the caller; NULL: no memory. */
char *ledger_print(const struct ledger *ledger, size_t *size);
/* 0; -EPROTO: no such text; -ENOMEM. What it is filled with is emptied before. */
int ledger_parse(const char *text, size_t size, struct ledger *ledger);
bool ledger_add(struct ledger *ledger, const struct ledger_line *line);
void ledger_clear(struct ledger *ledger); /* empty, and as if nobody was throttled */
void ledger_free(struct ledger *ledger);

#endif
