/*
 * weir/store.h - what members of a fleet write down, so that all of them see the same.
 *
 *	struct weir_store_config config;
 *
 *	weir_store_config_init(&config);
 *	config.address = "etcd://10.0.0.1:2379,10.0.0.2:2379";
 *	if (weir_store_open(&config, &store, why, sizeof(why)) != 0)
 *		die(why);
 *
 * A store holds rows, a key and a value each, and sessions. Rows are read at one instant
 * (weir_store_read()), and written all or none, if nothing has changed that must not have
 * (weir_store_commit()). A row may be bound to a session: it is gone when the session is. A
 * session is gone when nobody has kept it for its time to live, by the store's own clock. That
 * is all: shares, partitions and owners are made of it.
 *
 * Versions. Each commit has a number, above those of all before; a row has the number of the
 * commit that made it, and of the one that wrote it last. They are what fences are made of:
 * something guarded by the number of a row that is gone can never happen again.
 *
 * Lost data. A store that has lost what it acknowledged is another store, even where its address,
 * its settings and its server are the same. Every call checks that it reaches the store that the
 * handle knows. Once it reaches another one, all sessions of the handle are over (-ESTALE), a
 * commit without a session that was based on a reading of the old store is refused (-EAGAIN), and a
 * reading shows the new store, whose weir_store_view.proven begins at 0. Versions of the new store are
 * above all that the handle has seen of the old one, and above those of all others as long as no
 * wall clock goes back. docs/fleet.md says for each store which losses it notices.
 *
 * What can go wrong, of every function here but those that say otherwise:
 * -EAGAIN:    a check of a commit failed: read again, decide again. Nothing was written
 * -ESTALE:    the session is over. Nothing was written
 * -EIO:       no answer, or none that makes sense. Whether it happened is NOT KNOWN, and it may
 *             still happen: read before anything else
 * -ENOSPC:    the store answers but takes no writes: it has no room, or what its sentence says.
 *             Nothing was written; reads, and sessions that are there, go on
 * -EINVAL, -EACCES, -EMSGSIZE, -ENOMEM: the call was refused, and nothing was written
 * weir_store_error() has a sentence for each.
 *
 * Thread safety. Any thread may call any function of an open store at any time; the calls of one
 * handle happen one after the other. All of them may block for weir_store_config.timeout.
 */
#ifndef WEIR_STORE_H
#define WEIR_STORE_H

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A key is of letters, digits and -_.:@ in parts with / between, of which the first has a / after.
 */
#define WEIR_STORE_KEY_MAX 255

/* Bytes of a value. */
#define WEIR_STORE_VALUE_MAX ((size_t)1 << 20)

/* The most rows that one commit writes, or prefixes that are read at once. Checks: one fewer. */
#define WEIR_STORE_ROWS_MAX 128

/* A row as it is read. Key and value are the store's, for as long as the call lasts. */
struct weir_store_row {
	const char *key;
	const void *value;
	size_t size;      /* of the value */
	uint64_t version; /* of the commit that wrote it last */
	uint64_t made;    /* of the commit that made it; another, once it was gone */
};

/* What must be true for a commit to happen. */
enum weir_store_check_kind {
	WEIR_STORE_CHECK_ABSENT,  /* there is no such row */
	WEIR_STORE_CHECK_VERSION, /* it is of that version */
	WEIR_STORE_CHECK_MADE,    /* it was made by that commit, whatever was written since */
};

struct weir_store_check {
	const char *key;
	enum weir_store_check_kind kind;
	uint64_t version; /* 0 with WEIR_STORE_CHECK_ABSENT */
};

/* What a commit writes. No key twice in one. */
enum weir_store_write_kind {
	WEIR_STORE_WRITE_PUT,   /* a row that stays until it is erased */
	WEIR_STORE_WRITE_BIND,  /* one that goes with the session */
	WEIR_STORE_WRITE_ERASE, /* no row; it need not be there */
};

struct weir_store_write {
	const char *key;
	enum weir_store_write_kind kind;
	const void *value; /* NULL with WEIR_STORE_WRITE_ERASE */
	size_t size;
};

/* The instant that was read. */
struct weir_store_view {
	uint64_t version; /* of the last commit before it; it never goes back for one handle */
	/*
	 * How long the store is known to have lost nothing. What it does not show may still be held
	 * by a lease longer than this, which it has forgotten. It begins at 0 with the very first
	 * store as well, since that cannot be told from one that was emptied. WEIR_FOREVER where
	 * all members would be lost with the store.
	 */
	weir_dur proven;
};

/* What a store keeps its word on. */
struct weir_store_caps {
	weir_dur ttl_min; /* no session is granted less */
	weir_dur late;    /* so much after its time a session may still be there */
	uint32_t durable; /* 1: as the server is set up now, it keeps what it acknowledges */
	const char *note; /* a sentence: what it does not keep or has no room for; "" */
};

/* Told of each row; true: go on. */
typedef bool weir_store_row_fn(void *arg, const struct weir_store_row *row);

/*
 * A store. Those of weir_store_open() are opaque; one of your own begins with this structure, and
 * answers for its threads itself. Every function gets what has been checked already.
 */
struct weir_store {
	const struct weir_store_ops *ops;
};

struct weir_store_ops {
	size_t size;      /* of this structure */
	const char *name; /* for sentences */
	int (*begin)(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted);
	int (*keep)(struct weir_store *self, uint64_t session, weir_dur *granted);
	int (*end)(struct weir_store *self, uint64_t session);
	int (*commit)(struct weir_store *self, uint64_t session,
		      const struct weir_store_check *checks, size_t check_count,
		      const struct weir_store_write *writes, size_t write_count, uint64_t *version);
	int (*read)(struct weir_store *self, const char *const *prefixes, size_t count,
		    weir_store_row_fn *row, void *arg, struct weir_store_view *view);
	/* keep, and read if that is done, in one question. NULL: it is asked in two. */
	int (*keep_and_read)(struct weir_store *self, uint64_t session, weir_dur *granted,
			     const char *const *prefixes, size_t count, weir_store_row_fn *row,
			     void *arg, struct weir_store_view *view);
	void (*caps)(struct weir_store *self, struct weir_store_caps *caps);
	void (*error)(struct weir_store *self, char *text, size_t size);
	void (*close)(struct weir_store *self);
};

/* How a store is to be opened. weir_store_config_init() first. Strings are copied. */
struct weir_store_config {
	size_t size; /* set by weir_store_config_init() */
	/*
	 * NULL: of this handle alone: for one process, and for simulations
	 * "shm:/name": of all processes of this machine that may open that file of /dev/shm; if it
	 * was removed, a handle goes on with the file that has the name now, or makes it
	 * "redis://[user:password@]host[:port][/database]": one Redis server, version 5 or above
	 * "etcd://[user:password@]host[:port][,host[:port]...]": an etcd cluster, version 3.4 or
	 * above; "etcds://": the same over TLS
	 */
	const char *address;
	const char *
		name; /* "weir"; of servers: keys of different names do not meet. A part of a key */
	weir_dur timeout;  /* 2 s; how long a server may take to answer */
	uint32_t lazy;     /* 1: a server need not be there yet: calls answer -EIO until it is */
	uint32_t existing; /* 1: no file is made: -ENOENT where there is none */

	/* Files in PEM format, for "etcds://". */
	const char *tls_ca;   /* whom to believe; NULL: whom the system believes */
	const char *tls_cert; /* this client's certificate; NULL: none */
	const char *tls_key;  /* and its key */

	/*
	 * The mode of the file of shared memory, if it is made, less the umask: 0600. It also says
	 * which users this process trusts. A file that is there is opened if its owner is the
	 * effective user or root, with 0020 also if its group is the effective one, and with 0002
	 * whatever its owner; and only if no other users can write to it. -EPERM otherwise.
	 */
	uint32_t shm_mode;
	size_t shm_bytes; /* 4 MiB; for the maker, and for NULL; half of it is for rows */
	const struct weir_clock *clock; /* of NULL only; CLOCK_BOOTTIME */

	/*
	 * etcd takes no more writes once all that was ever written fills its quota. If this is set,
	 * history older than this is compacted, by one of all handles that set it in each interval.
	 * It concerns the whole cluster, so leave it at 0 where others need old revisions. 0: it is
	 * left to etcd (--auto-compaction-retention); otherwise from a second to a day.
	 */
	weir_dur compact;
};

#define weir_store_config_init(config) weir_store_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_store_config_init_sized(struct weir_store_config *config, size_t size);

/*
 * Open a store. It asks a server for what it keeps its word on. 0;
 * -EINVAL: the configuration is no good; -ENOTSUP: the library was built without that store, or
 * cannot do what is asked of it; -EACCES; -EIO: no server; -ENOMEM; or of a file, as errno has
 * it. One sentence in why (may be NULL), cut at why_size.
 */
WEIR_API WEIR_MUST_CHECK int weir_store_open(const struct weir_store_config *config,
					     struct weir_store **store, char *why, size_t why_size);

/* Close it. Sessions live on until their time is over. NULL is allowed. */
WEIR_API void weir_store_close(struct weir_store *store);

/* What it keeps its word on, as seen when it was last asked. */
WEIR_API void weir_store_caps_take(struct weir_store *store, struct weir_store_caps *caps);

/* Begin a session, of a number that nobody else has. *granted may be more than ttl. */
WEIR_API WEIR_MUST_CHECK int weir_store_begin(struct weir_store *store, weir_dur ttl,
					      uint64_t *session, weir_dur *granted);

/* Keep it: from the sending of this on, it has *granted more. -ESTALE: it is over. */
WEIR_API WEIR_MUST_CHECK int weir_store_keep(struct weir_store *store, uint64_t session,
					     weir_dur *granted);

/* End it, and what is bound to it. 0 where it is over already. */
WEIR_API int weir_store_end(struct weir_store *store, uint64_t session);

/*
 * All checks, then all writes, at once. session: 0 where nothing is bound; else it must live.
 * *version: of this commit (may be NULL).
 */
WEIR_API WEIR_MUST_CHECK int weir_store_commit(struct weir_store *store, uint64_t session,
					       const struct weir_store_check *checks,
					       size_t check_count,
					       const struct weir_store_write *writes,
					       size_t write_count, uint64_t *version);

/*
 * Visit all rows whose keys begin with any of so many prefixes, in no order, as they were at one
 * instant. A prefix has a / in it, and none begins with another; or it is "" alone, which all rows
 * begin with. row() must not call the store. *view may be NULL.
 */
WEIR_API WEIR_MUST_CHECK int weir_store_read(struct weir_store *store, const char *const *prefixes,
					     size_t count, weir_store_row_fn *row, void *arg,
					     struct weir_store_view *view);

/*
 * weir_store_keep() and weir_store_read(), for which a server is asked at once: neither waits for
 * the other's answer. What is read is no older than the sending of this. Where it is not 0,
 * *granted is 0, and the session may have been kept.
 */
WEIR_API WEIR_MUST_CHECK int weir_store_keep_and_read(struct weir_store *store, uint64_t session,
						      weir_dur *granted,
						      const char *const *prefixes, size_t count,
						      weir_store_row_fn *row, void *arg,
						      struct weir_store_view *view);

/* A sentence about the last call that failed; "" if none did. Never fails. */
WEIR_API void weir_store_error(struct weir_store *store, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
