/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internals of the store in an etcd cluster: its state, and the JSON of its transactions.
 *
 * Keys are NAME/KEY. Four kinds of rows belong to the store itself, and begin with a second /:
 *
 * NAME//store    the identity of this incarnation of the store, and the base of its versions
 * NAME//age      how long it has been this incarnation, in ms, as far as any process has seen
 * NAME//compact  counts the turns of the handles that compact the cluster
 * NAME//s/ID     a session, bound to its lease; the value is the store's identity
 */
#ifndef WEIR_FLEET_ETCD_ROWS_H
#define WEIR_FLEET_ETCD_ROWS_H

#include "fleet/store/etcd_link.h"
#include "fleet/store/etcd_space.h"

#define IDENTITY_SIZE 96
#define STORE_KEY     "/store"
#define AGE_KEY       "/age"
#define SESSIONS      "/s/"

struct etcd {
	struct weir_store store;
	struct etcd_link *link;
	char name[WEIR_STORE_KEY_MAX + 1];
	char why[WHY_SIZE];

	/* What is known about the store (etcd_life.c). */
	char identity[IDENTITY_SIZE]; /* value of NAME//store; "": not known yet */
	bool doubted;                 /* the identity must be read again */
	uint64_t cluster;
	uint64_t base; /* of its versions: a version is a revision plus base */
	uint64_t seen; /* the highest version seen */
	weir_dur age;  /* the store's age when the identity was read; aged is the time of that */
	weir_time aged;
	weir_dur published; /* the age last written to NAME//age */

	/* The session begun or renewed last, and the time until which it lives at least. */
	uint64_t session;
	weir_time session_end;
	bool broken; /* a session of this store was over before that time */

	struct etcd_space space;

	/* How it was opened, for connections of watches: nothing of it changes. */
	struct address address;
	weir_dur timeout;
	struct weir_store_config config; /* with copies of tls_ca, tls_cert and tls_key */
};

/* Values as JSON text; NULL: out of memory. */
json_t *etcd_bytes(const void *bytes, size_t size);
json_t *etcd_key(const struct etcd *e, const char *key);
/* The first key after all keys with the prefix. */
json_t *etcd_end_of(const struct etcd *e, const char *prefix);
json_t *etcd_text_of(uint64_t number);

void etcd_session_key(uint64_t session, char *key, size_t size);

/* Parts of a transaction. */
json_t *etcd_is_text(const struct etcd *e, const char *key, const char *text);
json_t *etcd_is_absent(const struct etcd *e, const char *key);
json_t *etcd_put(const struct etcd *e, const char *key, const void *value, size_t size,
		 uint64_t session);
json_t *etcd_erase(const struct etcd *e, const char *key);
json_t *etcd_erase_all(const struct etcd *e, const char *prefix);
json_t *etcd_range(const struct etcd *e, const char *key, const char *prefix);

/*
 * Assemble a transaction from its parts, lists whose ownership it takes. json_null(): it has no such
 * part. NULL: out of memory, and so is the result. Without its comparisons, a transaction would write
 * to any store.
 */
json_t *etcd_transaction(json_t *compare, json_t *success, json_t *failure);

bool etcd_has_succeeded(const json_t *answer);

/* The range at that index in a transaction's answer; NULL: there is none. */
const json_t *etcd_response(const json_t *answer, size_t index);

/* The value of the only row of a range, as text. False: there is no row, or it is not text. */
bool etcd_value(const json_t *range, char *text, size_t size);

/*
 * Find out the identity of the store. A new identity is created where there is none, or where the
 * store found has lost data. Returns 0, or an error.
 */
int etcd_identify(struct etcd *e);

/*
 * Read the present base and revision, without knowing the store. The base is 0 if there is no store.
 * Returns 0, or an error.
 */
int etcd_find_base(struct etcd *e, uint64_t *base, uint64_t *revision);

/*
 * Check which store has answered a transaction, and at which version. -EIO: a store that has lost
 * data; nothing in the answer may be used.
 */
int etcd_verify(struct etcd *e, const json_t *answer, uint64_t *version);

/*
 * Whether this range, the store's row in the answer to a failed transaction, is that of the known
 * store.
 */
bool etcd_is_known(struct etcd *e, const json_t *range);

/* Note that a session was begun or renewed, by a request sent at that time. */
void etcd_note_session(struct etcd *e, uint64_t session, weir_time sent, weir_dur granted);

/* Note that this process ends the session. */
void etcd_forget_session(struct etcd *e, uint64_t session);

/* Note that the store no longer has the session. If that is too early, it is not the same store. */
void etcd_note_over(struct etcd *e, uint64_t session);

/* CLOCK_BOOTTIME, by which all of this is measured. */
weir_time etcd_now(void);

/* How long the store is known to have lost nothing. */
weir_dur etcd_age(const struct etcd *e);

/*
 * The part of a transaction that publishes the store's age; NULL: not due. *age becomes
 * etcd.published once the transaction has succeeded.
 */
json_t *etcd_put_age(const struct etcd *e, weir_dur *age);

/*
 * Do the periodic work on the cluster's space (etcd_space.c) if it is due, after an answer at that
 * version. A failure is retried when the work is due again.
 */
void etcd_space_step(struct etcd *e, uint64_t version);

/* The operations of watches (etcd_watch.c). */
int etcd_watch_open(struct weir_store *self, const char *const *prefixes, size_t count,
		    void **watch, char *why);
int etcd_watch_wait(struct weir_store *self, void *watch, weir_dur timeout,
		    struct weir_store_change *change);
void etcd_watch_wake(struct weir_store *self, void *watch);
void etcd_watch_close(struct weir_store *self, void *watch);

#endif
