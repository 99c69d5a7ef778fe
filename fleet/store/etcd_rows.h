/*
 * The store in an etcd cluster, inside: what its parts share, and the JSON of its transactions.
 *
 * Keys are NAME/KEY. Four kinds of rows are its own, and begin with a second /:
 *
 * NAME//store    which incarnation of the store this is, and what its versions begin at
 * NAME//age      how long that has been the store, in milliseconds, as far as any process has seen
 * NAME//compact  counts the turns of those that compact the cluster
 * NAME//s/ID     a session, bound to its lease; it says of which incarnation it is
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

	/* What is known of the store there (etcd_life.c). */
	char identity[IDENTITY_SIZE]; /* the row that says which one it is; "": not known yet */
	bool doubted;                 /* it has to be asked for again */
	uint64_t cluster;
	uint64_t base; /* of its versions: they are revisions above it */
	uint64_t seen; /* the highest version there was */
	weir_dur age;  /* the store's, when that was seen; and when that was */
	weir_time aged;
	weir_dur published; /* of that, what others can read */

	struct etcd_space space;
};

/* Values as JSON text; NULL: no memory. */
json_t *etcd_bytes(const void *bytes, size_t size);
json_t *etcd_key(const struct etcd *e, const char *key);
json_t *etcd_end_of(const struct etcd *e, const char *prefix); /* after all keys of the prefix */
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

/* The three parts of a transaction; each is a list, which is taken over, or NULL. */
json_t *etcd_transaction(json_t *compare, json_t *success, json_t *failure);

bool etcd_has_succeeded(const json_t *answer);

/* The range in that place of a transaction's answer; NULL: there is none. */
const json_t *etcd_response(const json_t *answer, size_t place);

/* The value of the only row of a range, as text. False: there is no row, or it is not text. */
bool etcd_value(const json_t *range, char *text, size_t size);

/*
 * Find out which store it is. 0: it is known; or the error. A new one is made where there is none,
 * or where the one that is there has lost something.
 */
int etcd_know(struct etcd *e);

/*
 * Which store has answered a transaction, and at which version. -EIO: it is a store that has lost
 * something; nothing in the answer may be believed.
 */
int etcd_verify(struct etcd *e, const json_t *answer, uint64_t *version);

/*
 * Whether this range, the store's row in the answer to a failed transaction, is of the known store.
 */
bool etcd_is_known(struct etcd *e, const json_t *range);

/* How long it has been the store, and has lost nothing. */
weir_dur etcd_age(const struct etcd *e);

/*
 * The part of a transaction that lets others know how long; NULL: it is not due. *age becomes
 * etcd.published once the transaction has succeeded.
 */
json_t *etcd_put_age(const struct etcd *e, weir_dur *age);

/*
 * Do what is due about the cluster's room (etcd_space.c), after a question that it has answered, at
 * that version. If it fails, it is tried again when it is due again.
 */
void etcd_space_step(struct etcd *e, uint64_t version);

#endif
