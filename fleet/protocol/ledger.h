/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rows of a limit in the store, as text that operators can read too.
 *
 * LIMIT/cfg       the configuration of the limit: stays
 * LIMIT/learning  how long its members learn: stays. It counts if the same commit wrote LIMIT/cfg, so
 *                 that what programs write that do not know of it is never combined with it
 * LIMIT/m/ID      a member: its wants, weight, priority and label, and what its process is
 *                 configured with: gone with its session
 * LIMIT/led       the ledger: the units that each member holds: stays. A line counts as long as the
 *                 member's row is there, made by the commit that the line names as its fence
 * LIMIT/drain/ID  that member holds nothing: stays (drain.h)
 * LIMIT/drained   the members with these labels hold nothing: stays (drain.h)
 * LIMIT/up        of a region: what it holds of a limit in another store, and for how long: stays
 * LIMIT/leader    of a region: its leader, which writes that row: gone with its session
 * fleet/templates what limits are made with that are not there yet: stays (templates.h)
 *
 * A limit that is allocated (allocation.h) has these in place of the ledger:
 *
 * LIMIT/allocator the member that divides the capacity: gone with its session
 * LIMIT/grants    what all members need to know; each of the allocator's commits writes it: stays
 * LIMIT/grant/ID  what that member may use: stays until an allocator erases it. It counts as long as
 *                 the member's row is there, made by the commit that the grant names as its fence
 */
#ifndef WEIR_FLEET_LEDGER_H
#define WEIR_FLEET_LEDGER_H

#include "fleet/protocol/allot.h"

#define LABEL_ROOM (WEIR_FLEET_LABEL_MAX + 1)

#define THROTTLE_NONE 1000000u /* millionths of the capacity in use: all of it */

struct limit_record {
	uint64_t capacity;
	enum weir_allotment allotment;
	uint64_t reserved;
	uint32_t members;
	uint64_t lease;    /* milliseconds */
	uint64_t learning; /* milliseconds; 0: the fleet's own. It has a row of its own */
	bool allocated;    /* an allocator divides it, and there is no ledger */
};

/* What a limit is made with whose name matches. */
struct template_record {
	char pattern[WEIR_FLEET_PATTERN_MAX + 1];
	struct limit_record limit;
};

struct member_record {
	uint64_t wants;
	uint32_t weight;
	int32_t priority;
	char label[LABEL_ROOM];
	/* What its process is configured with, for observers. */
	struct limit_record own; /* without lease and learning; capacity 0: the limit as it is */
	uint64_t learning;       /* milliseconds; 0: not known */
	/* Of a limit that is allocated. */
	bool allocated;
	bool elastic;          /* it takes headroom */
	uint64_t acknowledged; /* it uses no grant of an earlier number any more */
	uint64_t uses;         /* and of a grant of that number no more than these units */
	uint64_t claim;        /* units that it held by leases of a store that has forgotten them */
	uint32_t throttled;    /* the epoch in which the backend has throttled it last; 0: none */
};

/* The member that allocates. */
struct allocator_record {
	uint64_t id;
	char label[LABEL_ROOM];
};

/* What all members of an allocated limit need to know. */
struct grants_record {
	uint32_t throttle;
	uint32_t epoch; /* how often throttle has changed; begins at 1 */
	uint32_t members;
	bool crowded;    /* there are more members than seats */
	uint64_t shared; /* units of the capacity that were divided, at most */
};

/*
 * What a member may use. Within a number, units only grow. A lesser grant has the next number, and
 * the member may still use most until it has acknowledged that.
 */
struct grant_record {
	uint64_t fence;       /* the commit that made the member's row */
	uint64_t number;      /* from 1 */
	uint64_t units, most; /* most is not below units */
	bool seated;          /* units are reserved for it */
	bool lacks;           /* more is due to it, which others still hold */
};

/*
 * What a region holds above (region.c). It is certain for the time left, counted from any moment
 * before the commit tick.
 */
struct up_record {
	uint64_t carried;
	uint64_t tick;
	uint64_t left;        /* microseconds */
	uint64_t id, session; /* of the region as a member above, for the next leader */
};

/* A member of partitioned work. */
struct worker_record {
	uint32_t weight;
	char label[LABEL_ROOM];
};

/*
 * What partitions are, the same for all members. capacity and factor: 0 for plain work. changes: how
 * often they were changed for members that are there; 0: they are what a member is configured with.
 */
struct work_record {
	uint32_t count;
	uint64_t capacity, factor;
	uint64_t lease; /* milliseconds: the longest of a member */
	uint64_t changes;
};

/* The owner of a partition, and what the partition is of a capacity. units 0: of plain work. */
struct owner_record {
	uint64_t id;
	uint64_t from, units; /* those from here on */
};

/*
 * What precedes the value of a checkpoint. refused is the fence of the owner from which the
 * checkpoint was taken when it was set back the last time: that owner writes none any more.
 */
struct checkpoint_record {
	bool none;         /* it was set back to nothing, and none has been written since */
	uint64_t sequence; /* 0 if there is none */
	uint64_t rewinds;  /* how often it was set back; 0: never, and the rest is not used */
	uint64_t when;     /* the last time, in seconds since 1970 */
	uint64_t refused;  /* 0: it had no owner */
	char who[LABEL_ROOM];
};

struct ledger_line {
	uint64_t id, fence, grant;
};

struct ledger {
	uint32_t throttle;
	struct ledger_line *lines;
	size_t count, room;
};

#define RECORD_SIZE 256 /* of the text of a limit or a member */
#define KEY_ROOM    (WEIR_SHARE_NAME_MAX + 32)

#define LEARNING_KEY "learning" /* the last part of the key */

#define TEMPLATE_SIZE 320 /* of the text of a template */

#define OWNER_SIZE 64 /* of the text of an owner */

#define CHECKPOINT_HEAD_SIZE 192

/* Whether text is 1 to most letters, digits and -_.:@. NULL is not. */
bool is_word(const char *text, size_t most);

/* HOST:PID. Other characters than labels have become -, and a long host name is cut. */
void label_of_process(const char *host, long pid, char label[LABEL_ROOM]);

/* The key of a member's row; kind is "m", "drain" or "grant". */
void member_key(const char *limit, const char *kind, uint64_t id, char key[KEY_ROOM]);

/* Format a record. Returns the length of the text. */
size_t limit_print(const struct limit_record *record, char text[RECORD_SIZE]);
size_t learning_print(uint64_t learning, char text[RECORD_SIZE]);
size_t template_print(const struct template_record *record, char text[TEMPLATE_SIZE]);
size_t member_print(const struct member_record *record, char text[RECORD_SIZE]);
size_t up_print(const struct up_record *record, char text[RECORD_SIZE]);
size_t worker_print(const struct worker_record *w, char text[RECORD_SIZE]);
size_t work_print(const struct work_record *p, char text[RECORD_SIZE]);
size_t owner_print(const struct owner_record *o, char text[OWNER_SIZE]);
size_t allocator_print(const struct allocator_record *a, char text[RECORD_SIZE]);
size_t grants_print(const struct grants_record *g, char text[RECORD_SIZE]);
size_t grant_print(const struct grant_record *g, char text[RECORD_SIZE]);

/* text has CHECKPOINT_HEAD_SIZE bytes, and those of the value. */
size_t checkpoint_print(const struct checkpoint_record *c, const void *value, size_t size,
			char *text);

/* Parse a record. Returns false if the text is not one. */
bool limit_parse(const char *text, size_t size, struct limit_record *record);
bool learning_parse(const char *text, size_t size, uint64_t *learning);
/* A line of the templates. Its pattern and its settings are not checked for what they mean. */
bool template_parse(const char *text, size_t size, struct template_record *record);
bool member_parse(const char *text, size_t size, struct member_record *record);
bool up_parse(const char *text, size_t size, struct up_record *record);
bool worker_parse(const char *text, size_t size, struct worker_record *record);
bool work_parse(const char *text, size_t size, struct work_record *record);
bool owner_parse(const char *text, size_t size, struct owner_record *record);
bool allocator_parse(const char *text, size_t size, struct allocator_record *record);
bool grants_parse(const char *text, size_t size, struct grants_record *record);
bool grant_parse(const char *text, size_t size, struct grant_record *record);
/* The value goes from *value to the end of the text. */
bool checkpoint_parse(const char *text, size_t size, struct checkpoint_record *record,
		      const char **value);

/* The caller frees the text. Returns NULL without memory. */
char *ledger_print(const struct ledger *ledger, size_t *size);
/* Replaces what the ledger has. Returns 0; -EPROTO: the text is not a ledger; or -ENOMEM. */
int ledger_parse(const char *text, size_t size, struct ledger *ledger);
bool ledger_add(struct ledger *ledger, const struct ledger_line *line);
void ledger_clear(struct ledger *ledger); /* no lines, no throttling */
void ledger_free(struct ledger *ledger);

#endif
