/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/store.h - the shared store through which the members of a fleet coordinate.
 *
 *	struct weir_store_config config;
 *
 *	weir_store_config_init(&config);
 *	config.address = "etcd://10.0.0.1:2379,10.0.0.2:2379";
 *	if (weir_store_open(&config, &store, why, sizeof(why)) != 0)
 *		die(why);
 *
 * A store holds sessions and rows; a row is a key and a value. weir_store_read() reads rows as of
 * one instant. weir_store_commit() writes all of its rows or none, and only if its checks pass. A
 * row may be bound to a session, and then disappears with it. A session ends when it has not been
 * renewed for its time to live, measured by the store's own clock. Shares, partitions and ownership
 * are built from these alone.
 *
 * Versions. Each commit has a number, above those of all earlier ones. A row has the number of the
 * commit that created it, and of the one that wrote it last. Fences are made of these: an action
 * guarded by the number of a row that is gone can never happen again.
 *
 * Lost data. A store that has lost acknowledged data is another store, even if its address, its
 * settings and its server are the same. Every call checks that it reaches the store that the handle
 * knows. Once it reaches another one, all sessions of the handle are over (-ESTALE), a commit
 * without a session that was based on a reading of the old store is refused (-EAGAIN), and a
 * reading shows the new store, whose weir_store_view.proven begins at 0. Versions of the new store
 * are above all that the handle has seen of the old one, and above those of all others as long as
 * no wall clock goes back. docs/fleet.md says for each store which losses it detects.
 *
 * Errors of all functions here, unless they say otherwise; weir_store_error() has a sentence for
 * each:
 * -EAGAIN:    a check of a commit failed: read again and decide again. Nothing was written
 * -ESTALE:    the session is over. Nothing was written
 * -EIO:       no answer, or an invalid one. It is NOT KNOWN whether the request was carried out,
 *             and it still may be: read before anything else
 * -ENOSPC:    the store answers but refuses writes: it has no room, or what its sentence says.
 *             Nothing was written; reads, and existing sessions, still work
 * -EINVAL:    an argument is invalid. Nothing was written
 * -EACCES:    the server refused the client. Nothing was written
 * -EMSGSIZE:  a value, or the whole request, is too large. Nothing was written
 * -ENOMEM:    out of memory. Nothing was written
 *
 * Thread safety. Any thread may call any function of an open store at any time; calls on one handle
 * are serialized. Any of them may block for weir_store_config.timeout. A watch waits beside them.
 */
#ifndef WEIR_STORE_H
#define WEIR_STORE_H

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A key consists of letters, digits and -_.:@ in parts separated by /. There must be a / after the
 * first part.
 */
#define WEIR_STORE_KEY_MAX 255

/* The largest value, in bytes. */
#define WEIR_STORE_VALUE_MAX ((size_t)1 << 20)

/*
 * The most rows that one commit writes, or prefixes that one call reads. A commit may have one
 * check fewer.
 */
#define WEIR_STORE_ROWS_MAX 128

/* A row as it is read. Key and value belong to the store, and are valid during the call. */
struct weir_store_row {
	const char *key;
	const void *value;
	size_t size;      /* of the value, in bytes */
	uint64_t version; /* of the commit that wrote it last */
	uint64_t made;    /* of the commit that created it, most recently */
};

/* A condition of a commit. */
enum weir_store_check_kind {
	WEIR_STORE_CHECK_ABSENT,  /* there is no such row */
	WEIR_STORE_CHECK_VERSION, /* the row has that version */
	WEIR_STORE_CHECK_MADE,    /* that commit created the row, whatever was written since */
};

struct weir_store_check {
	const char *key;
	enum weir_store_check_kind kind;
	uint64_t version; /* 0 with WEIR_STORE_CHECK_ABSENT */
};

/* A write of a commit. A key may occur once per commit. */
enum weir_store_write_kind {
	WEIR_STORE_WRITE_PUT,   /* a row that stays until it is erased */
	WEIR_STORE_WRITE_BIND,  /* a row that is erased when the session ends */
	WEIR_STORE_WRITE_ERASE, /* erases the row if there is one */
};

struct weir_store_write {
	const char *key;
	enum weir_store_write_kind kind;
	const void *value; /* NULL with WEIR_STORE_WRITE_ERASE */
	size_t size;
};

/* The instant at which rows were read. */
struct weir_store_view {
	uint64_t version; /* of the last commit before it; never goes back for one handle */
	/*
	 * How long the store is known to have lost nothing. A lease that it does not show may still
	 * be held if it is longer than this, since the store may have forgotten it. Begins at 0
	 * with the very first store as well, since that cannot be distinguished from one that was
	 * emptied. WEIR_FOREVER where all members would be lost with the store.
	 */
	weir_dur proven;
};

/* The guarantees of a store. */
struct weir_store_caps {
	weir_dur ttl_min; /* the shortest session that it grants */
	weir_dur late;    /* how long a session may outlive its time, at most */
	uint32_t durable; /* 1: as the server is set up now, it keeps what it acknowledges */
	const char *note; /* a sentence: what it does not keep or has no room for; or "" */
};

/* A report of a watch. It is valid until the next call on the watch. */
struct weir_store_change {
	const char *key;  /* of a row that was written or erased; "": any row may have been */
	uint64_t version; /* of that commit, or of a later one of the same row; 0 with "" */
	const char *why;  /* a sentence, if the result is an error; otherwise "" */
};

/* Called for each row. Returns true to go on, false to stop. */
typedef bool weir_store_row_fn(void *arg, const struct weir_store_row *row);

#define WEIR_STORE_WHY_SIZE 256

/*
 * A store. Those of weir_store_open() are opaque. One of your own begins with this structure, and
 * is responsible for its own thread safety. All arguments of its functions have been checked.
 */
struct weir_store {
	const struct weir_store_ops *ops;
};

struct weir_store_ops {
	size_t size;      /* of this structure */
	const char *name; /* for error sentences */
	int (*begin)(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted);
	int (*keep)(struct weir_store *self, uint64_t session, weir_dur *granted);
	int (*end)(struct weir_store *self, uint64_t session);
	int (*commit)(struct weir_store *self, uint64_t session,
		      const struct weir_store_check *checks, size_t check_count,
		      const struct weir_store_write *writes, size_t write_count, uint64_t *version);
	int (*read)(struct weir_store *self, const char *const *prefixes, size_t count,
		    weir_store_row_fn *row, void *arg, struct weir_store_view *view);
	/* keep, then read if that succeeds, in one request. NULL: two requests are made. */
	int (*keep_and_read)(struct weir_store *self, uint64_t session, weir_dur *granted,
			     const char *const *prefixes, size_t count, weir_store_row_fn *row,
			     void *arg, struct weir_store_view *view);
	void (*caps)(struct weir_store *self, struct weir_store_caps *caps);
	void (*error)(struct weir_store *self, char *text, size_t size);
	void (*close)(struct weir_store *self);
	/*
	 * As weir_store_watch_open() and the functions after it. All four, or none: then the store
	 * cannot be watched. *watch is what the other three get. why has WEIR_STORE_WHY_SIZE bytes.
	 * A wake that comes before a wait ends it. watch_close is called once no thread waits.
	 */
	int (*watch_open)(struct weir_store *self, const char *const *prefixes, size_t count,
			  void **watch, char *why);
	int (*watch_wait)(struct weir_store *self, void *watch, weir_dur timeout,
			  struct weir_store_change *change);
	void (*watch_wake)(struct weir_store *self, void *watch);
	void (*watch_close)(struct weir_store *self, void *watch);
};

/* How to open a store. Call weir_store_config_init() first. Strings are copied. */
struct weir_store_config {
	size_t size; /* set by weir_store_config_init() */
	/*
	 * NULL: private to this handle, for one process, and for simulations.
	 * "shm:/name": shared by all processes of this machine that may open that file of /dev/shm.
	 * If it is removed, a handle continues with the file that has the name now, or creates it.
	 * "redis://[user:password@]host[:port][/database]": one Redis server, version 5 or above.
	 * "redis-sentinel://[user:password@]host[:port][,host[:port]...]/service[/database]": the
	 * Redis server that these Sentinels report as the master of a service. The user and the
	 * password are the server's. Each Sentinel may take timeout to answer.
	 * "etcd://[user:password@]host[:port][,host[:port]...]": an etcd cluster, version 3.4 or
	 * above; "etcds://": the same over TLS.
	 *
	 * A password need not be in the address: at its end, "?password-file=/path" names a file
	 * whose first line it is, and "?password-env=NAME" an environment variable. A user is given
	 * as "user@" then. Both are read at each login, so a password may be changed while the store
	 * is open. -EACCES if there is none. Elsewhere in an address, %XX stands for a character.
	 */
	const char *address;
	/* Default: "weir". The first part of all keys in a server, so different fleets can share one. */
	const char *name;
	weir_dur timeout;  /* default: 2 s; how long a server may take to answer */
	uint32_t lazy;     /* 1: open even without a server; calls return -EIO until there is one */
	uint32_t existing; /* 1: do not create a file: -ENOENT if there is none */

	/* Files in PEM format, for "etcds://". */
	const char *tls_ca;   /* trusted authorities; NULL: those of the system */
	const char *tls_cert; /* this client's certificate; NULL: none */
	const char *tls_key;  /* the key of tls_cert */

	/*
	 * The mode of the shared memory file if it is created, less the umask. Default: 0600. It
	 * also says which users this process trusts. An existing file is opened if its owner is the
	 * effective user or root, with 0020 also if its group is the effective one, and with 0002
	 * whatever its owner; and only if no other users can write to it. -EPERM otherwise.
	 */
	uint32_t shm_mode;
	/* Default: 4 MiB; used by the creator, and without an address; half is for rows */
	size_t shm_bytes;
	const struct weir_clock *clock; /* only without an address; default: CLOCK_BOOTTIME */

	/*
	 * etcd refuses writes once its whole history fills its quota. If this is set, history older
	 * than this is compacted, once per interval by one of the handles that set it. It affects
	 * the whole cluster, so leave it at 0 if others need old revisions. Default: 0, left to
	 * etcd (--auto-compaction-retention); otherwise from a second to a day.
	 */
	weir_dur compact;
};

#define weir_store_config_init(config) weir_store_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_store_config_init_sized(struct weir_store_config *config, size_t size);

/*
 * Open a store, and ask its server for its guarantees. On error, why (may be NULL) gets one
 * sentence, truncated to why_size.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the configuration is invalid
 * -ENOTSUP: the library was built without that store, or without a feature that is needed
 * -EACCES: the server refused the client
 * -EIO: no server answered
 * -ENOMEM: out of memory
 * Other errors are those of opening a file.
 */
WEIR_API WEIR_MUST_CHECK int weir_store_open(const struct weir_store_config *config,
					     struct weir_store **store, char *why, size_t why_size);

/* Close a store. Its sessions live on until their time is over. NULL is allowed. */
WEIR_API void weir_store_close(struct weir_store *store);

/* Fill in the guarantees of a store, as its server last reported them. */
WEIR_API void weir_store_caps_take(struct weir_store *store, struct weir_store_caps *caps);

/*
 * Begin a session, with a number that no other session has. *granted, its time to live, may be more
 * than ttl.
 */
WEIR_API WEIR_MUST_CHECK int weir_store_begin(struct weir_store *store, weir_dur ttl,
					      uint64_t *session, weir_dur *granted);

/*
 * Renew a session: its time to live is *granted, counted from when this request was sent. Returns
 * 0, or -ESTALE: it is over.
 */
WEIR_API WEIR_MUST_CHECK int weir_store_keep(struct weir_store *store, uint64_t session,
					     weir_dur *granted);

/* End a session, and erase the rows bound to it. Returns 0 if it is over already. */
WEIR_API int weir_store_end(struct weir_store *store, uint64_t session);

/*
 * Carry out all checks, then all writes, atomically. session may be 0 if no row is bound; otherwise
 * it must be alive. *version (may be NULL) is set to the number of this commit.
 */
WEIR_API WEIR_MUST_CHECK int weir_store_commit(struct weir_store *store, uint64_t session,
					       const struct weir_store_check *checks,
					       size_t check_count,
					       const struct weir_store_write *writes,
					       size_t write_count, uint64_t *version);

/*
 * Visit all rows whose keys begin with any of count prefixes, in no particular order, as of one
 * instant. A prefix contains a /, and none begins with another one; or there is a single "", which
 * matches all rows. A prefix that ends with = stands for the one row whose key precedes the =: that
 * takes no longer where there are many rows. row() must not call the store. view may be NULL.
 */
WEIR_API WEIR_MUST_CHECK int weir_store_read(struct weir_store *store, const char *const *prefixes,
					     size_t count, weir_store_row_fn *row, void *arg,
					     struct weir_store_view *view);

/*
 * As weir_store_keep() followed by weir_store_read(), but without waiting for the first
 * answer before the second request is sent. What is read is no older than the sending of the
 * requests. On error, *granted is 0, and the session may have been renewed.
 */
WEIR_API WEIR_MUST_CHECK int weir_store_keep_and_read(struct weir_store *store, uint64_t session,
						      weir_dur *granted,
						      const char *const *prefixes, size_t count,
						      weir_store_row_fn *row, void *arg,
						      struct weir_store_view *view);

/* The most prefixes that one watch has. */
#define WEIR_STORE_WATCH_MAX 1024

struct weir_store_watch;

/*
 * Watch all rows whose keys begin with any of count prefixes, as in weir_store_read(), except that
 * a row may match several. The watch has a connection of its own, and must be closed before the
 * store.
 *
 * Each change that is committed after this call has returned 0, by any process, is reported by
 * weir_store_watch_wait() at least once: by its key, or as "any row". So a reading that begins after
 * this call, and the reports, miss nothing between them. Several changes of one row may be one
 * report, with the version of the last one. Rows that have not changed may be reported too. Rows
 * that end with their session are reported if it was ended by weir_store_end(); those of a session
 * whose time is over are reported by etcd, by Redis once a reading comes upon them, and otherwise
 * not.
 *
 * Returns 0, or a negative errno; why (may be NULL) gets a sentence, truncated to why_size:
 * -ENOTSUP: this store cannot be watched
 * -EINVAL: the prefixes are invalid
 * -EACCES: the server refused the client
 * -EIO: no server answered
 * -ENOMEM: out of memory
 */
WEIR_API WEIR_MUST_CHECK int weir_store_watch_open(struct weir_store *store,
						   const char *const *prefixes, size_t count,
						   struct weir_store_watch **watch, char *why,
						   size_t why_size);

/*
 * Wait for a change, by CLOCK_MONOTONIC; WEIR_FOREVER is allowed. One thread at a time may wait.
 * After an error other than -ETIMEDOUT and -ECANCELED any row may have changed. The next call then
 * connects again, to any of the servers, and the first report after that is "any row". While it
 * connects, a call may take weir_store_config.timeout longer for each server that it tries.
 *
 * Returns 0, or a negative errno:
 * -ETIMEDOUT: nothing was reported in that time
 * -ECANCELED: weir_store_watch_wake() or weir_store_watch_close() was called
 * -EBUSY: another thread waits
 * -EACCES: the server refuses the client
 * -EIO: the connection was lost, or the server sent something invalid
 * -ENOMEM: out of memory
 */
WEIR_API WEIR_MUST_CHECK int weir_store_watch_wait(struct weir_store_watch *watch, weir_dur timeout,
						   struct weir_store_change *change);

/* End the wait of another thread, or else the next one. Any thread. */
WEIR_API void weir_store_watch_wake(struct weir_store_watch *watch);

/* Stop watching. A thread that waits returns first. NULL is allowed. */
WEIR_API void weir_store_watch_close(struct weir_store_watch *watch);

/* Fill text with a sentence about the last call that failed; "" if none did. Never fails. */
WEIR_API void weir_store_error(struct weir_store *store, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
