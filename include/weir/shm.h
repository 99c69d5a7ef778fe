/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/shm.h - one limiter for several processes.
 *
 *	if (weir_shm_open("/frontend", 0600, &config, 64, &limiter, why, sizeof(why)) != 0)
 *		die(why);			in each process, after the last fork()
 *	...
 *	weir_try_acquire(limiter, &token)	and everything else as usual
 *	...
 *	weir_shm_reap(limiter, NULL);		several times a second, in one process or all
 *
 * If each worker process of a server had a limit of its own, the number of workers would decide
 * what the server admits. Here they share one limiter: its permits, its partitions, its queue, and
 * what it learns from the calls of all. It lies in a block of memory that each process maps at any
 * address: by name (weir_shm_open()), or in any shared mapping that the caller provides, such as a
 * memfd or an anonymous mapping that children inherit (weir_shm_init(), weir_shm_attach()).
 *
 * Trust. A process that can write to a block can disturb every process that shares it: take every
 * permit, set the limit, keep others waiting. It cannot make them run code of its choice: a block
 * holds no pointer, and a process uses only pointers of its own. (So the state of a program's own
 * limit, struct weir_limit_ops, must not hold pointers either.) A process that can write to the
 * file can also truncate it, which ends those that have it mapped by SIGBUS. So a name is opened
 * only if the file is trusted:
 * - It is a regular file, and not a link.
 * - Its owner is the effective user of this process or root. weir_shm_open_of() and
 *   weir_shm_open_observer_of() trust one more user, or any.
 * - No other users can write to it, unless the caller trusts them. The caller's mode says which it
 *   trusts: with 0020 it trusts the group of the file, and any owner whose file is of this
 *   process's effective group; with 0002 it trusts every user of the machine. An observer also
 *   opens a file that the file's group can write to.
 *
 * Any other file, such as one that another user has put under the name, is refused with -EPERM, and
 * is neither mapped nor written to. A program that inherits or makes a mapping itself
 * (weir_shm_attach()) must decide by itself whether to trust it.
 *
 * Private to a process are the handle; the observer, gauge, random source and tracked tokens
 * (weir_config), of which those of the process that closes a window are used; and tokens, which
 * only the process that acquired them may release. Permits are not cached for each CPU as in an
 * unshared limiter, so processes on many CPUs share one word.
 *
 * Death. A process may die at any instruction. Its permits stay in flight until weir_shm_reap() is
 * called. Until then there is less room. If the process was about to close a window, the limit does
 * not change. If it was about to hand permits to waiters, these wait until their deadlines. If it
 * was about to join the queue, new calls may be refused as if calls waited. A reaping returns the
 * permits of dead processes, takes their waiters out of the queue, completes what they were doing,
 * and, if they died in the algorithm, restarts it at the limit in force. Calls that they had
 * detached raise the limit until then, and no longer (WEIR_LIMIT_DETACHED). A permit can also be on
 * its way between the limiter and a process that died, for at most one call of each of its threads.
 * These are found by comparing all that is in flight with all that is held, for at least a second.
 * So nothing is lost for good.
 *
 * The limit is never exceeded, with these exceptions. If a call of a living process has been
 * stopped for all of that second in the few instructions between the two, while other processes
 * die, it counts as lost. When it continues, the limit is exceeded by its permits until the next
 * reaping, which notices. The same holds for a call stopped while it is detached. If a process dies
 * while it returns the permits of a detached call, these may raise the limit until it is reaped. If
 * it dies while it detaches a call, the limit may be too low by the call's permits until the second
 * is over. Counters may lack the call that a process was counting as it died.
 *
 * No function waits for a process that is dead, whether it has been reaped or not. If one dies
 * while it sets a limit, sets partitions, or owns the window, the next process that needs the same
 * thing finishes the work of the dead one. Its permits and waiters are left to a reaping.
 *
 * Stopping. A process may also be stopped at any instruction, by SIGSTOP or a debugger. Nothing can
 * be taken from it, as it may continue at any time. Meanwhile, calls are admitted, refused and
 * released. If it is stopped while it hands permits to waiters, closes a window, or reaps, no other
 * process does the same until it continues or dies: waiters wait until their deadlines, the limit
 * does not change, or the permits of dead processes stay in flight (weir_shm_reap() returns -EAGAIN
 * at once). weir_limit_set() and weir_limit_cap() take effect all the same; when the stopped
 * process continues, an older value may be in force for an instant. weir_partitions_set(),
 * weir_limiter_save() and weir_limiter_load() return -EAGAIN after about 20 ms. weir_shm_detach()
 * waits two seconds for a reaper, and then leaves the process's permits and waiters to a reaping.
 *
 * A process is identified by its pid, in its pid namespace, and by its start time. A process of
 * another pid namespace can only be reaped from that namespace, or by weir_shm_evict(). A process
 * that calls exec() stays alive, so it must detach before.
 *
 * Fork. A handle belongs to the process that attached. In a child the kernel zeroes the handle's
 * memory (MADV_WIPEONFORK, Linux 4.14), so every function that acquires, waits or changes something
 * returns -ESTALE there, weir_release() does nothing, and totals are zero. The child attaches for a
 * handle of its own. A token from before the fork belongs to the parent: releasing it by the
 * child's handle does no harm, and is counted (weir_snapshot.double_released).
 *
 * Waiting. Threads in weir_acquire() are woken whichever process makes room. A callback of
 * weir_enqueue() runs in the process that enqueued it: at once, if that process made room; if
 * another process did, when a thread of the first is in weir_shm_listen(), or never if the waiter
 * is polled first. weir_executor also needs such a thread.
 *
 * Clocks. weir_config.clock must be NULL. Times in the block are of CLOCK_MONOTONIC, so all
 * processes must be in one time namespace, and a block does not survive a reboot.
 *
 * Thread safety. Any thread may call any function of this header at any time, except
 * weir_shm_detach(). None may be called from signal handlers, observers and grant callbacks.
 * weir_limiter_destroy() detaches, too.
 */
#ifndef WEIR_SHM_H
#define WEIR_SHM_H

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most processes that can share a limiter at once. */
#define WEIR_SHM_MEMBERS_MAX 8192

/*
 * The size of a block, in bytes, for that many processes at once. Returns 0 if the configuration is
 * invalid or has a clock, or if members is 0 or too large. A member costs some hundred bytes, and
 * 16 more for each partition.
 */
WEIR_API size_t weir_shm_size(const struct weir_config *config, uint32_t members);

/*
 * Make a limiter in a block, aligned to WEIR_ALIGN as mappings are, whatever its present contents.
 * No process may be attached to it. Afterwards any number of processes attach. On failure why (may
 * be NULL) gets one sentence, cut at why_size.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the configuration is invalid, or the block is not aligned or too small.
 * -ENOMEM: out of memory.
 *
 * Other errors are those of reading /proc, such as -EMFILE.
 */
WEIR_API WEIR_MUST_CHECK int weir_shm_init(void *block, size_t size,
					   const struct weir_config *config, uint32_t members,
					   char *why, size_t why_size);

/*
 * Attach to the limiter in a block, which must stay mapped until weir_shm_detach(). config is the
 * configuration that it was made with, and provides this process's observer, gauge and random
 * source; seed and stripes may differ. NULL: whatever it was made with, if the library knows its
 * algorithm. If all leases are taken, dead processes are reaped first. On failure *limiter is NULL,
 * with one sentence in why (may be NULL), cut at why_size.
 *
 * Returns 0, or a negative errno:
 * -EPROTO: the block is not a limiter, is damaged, or is of another version of the library, another
 *   kind of machine, another boot of this machine, another algorithm or another configuration.
 * -EINVAL: the configuration is invalid, or the block is not aligned.
 * -ENOSPC: as many processes as there may be are alive.
 * -ENOMEM: out of memory.
 * -ENOTSUP: the kernel has no memory that is wiped on fork.
 *
 * Other errors are those of reading /proc, such as -EMFILE. Without /proc there are none.
 */
WEIR_API WEIR_MUST_CHECK int weir_shm_attach(void *block, size_t size,
					     const struct weir_config *config,
					     struct weir_limiter **limiter, char *why,
					     size_t why_size);

/*
 * As weir_shm_attach(), but read-only: an observer takes no lease, and its mapping may be
 * read-only. Functions that show something work; those that would change something return -EACCES.
 * An algorithm that the library does not know shows no numbers of its own.
 */
WEIR_API WEIR_MUST_CHECK int weir_shm_observe(const void *block, size_t size,
					      struct weir_limiter **limiter, char *why,
					      size_t why_size);

/*
 * Attach to the limiter of that name, where names are those of shm_open(). The first process
 * creates it. mode is the mode of a file that is created, less the umask, and says which users the
 * caller trusts (see above). members, as above, counts for the creator only. config may be NULL
 * where the limiter is known to exist. A limiter is published under its name only when it is
 * complete, so no process waits for its creator. An existing one is never created again, and a file
 * that is something else is never overwritten. shm_unlink() removes the name. Where the system does
 * not support unnamed files (O_TMPFILE), a creator that dies can leave behind a file whose name
 * begins with ".weir-".
 *
 * Returns 0, or a negative errno:
 * -EPERM: the file belongs to a user who is not trusted, or such users can write to it, and why
 *   says which.
 * -EPROTO: the file is empty, truncated or not a regular file, or as for weir_shm_attach().
 * -EAGAIN: other processes keep creating and removing the name.
 *
 * Other errors are those of weir_shm_attach(), and those of opening, creating and mapping the file:
 * -ENOENT, -EACCES, -ENOSPC, -ENOMEM and others.
 */
WEIR_API WEIR_MUST_CHECK int weir_shm_open(const char *name, unsigned mode,
					   const struct weir_config *config, uint32_t members,
					   struct weir_limiter **limiter, char *why,
					   size_t why_size);

/*
 * As weir_shm_open(), but as an observer: the file must be readable, and its owner trusted.
 */
WEIR_API WEIR_MUST_CHECK int weir_shm_open_observer(const char *name, struct weir_limiter **limiter,
						    char *why, size_t why_size);

/*
 * For owner: any user of the machine. An observer then also opens a file that any user can write.
 */
#define WEIR_SHM_ANY_USER UINT32_MAX

/*
 * As weir_shm_open() and weir_shm_open_observer(), where the file may belong to another user. owner
 * is the number of the user that is trusted besides the effective user and root (0: no other), or
 * WEIR_SHM_ANY_USER. With it, a parent that runs as root can open what its workers have created,
 * and an administrator what belongs to a service.
 */
WEIR_API WEIR_MUST_CHECK int weir_shm_open_of(const char *name, uint32_t owner, unsigned mode,
					      const struct weir_config *config, uint32_t members,
					      struct weir_limiter **limiter, char *why,
					      size_t why_size);
WEIR_API WEIR_MUST_CHECK int weir_shm_open_observer_of(const char *name, uint32_t owner,
						       struct weir_limiter **limiter, char *why,
						       size_t why_size);

/*
 * Visit the names of the shared limiters of this machine that this process may read, in no order:
 * those that shm_open() would open. Other files are skipped. Only the first bytes of each file are
 * read, so weir_shm_open_observer() may still refuse a name: the file may be damaged, or of another
 * version. Stops early if visit() returns false. Returns the number visited, or the negative errno
 * of reading the folder or one of its files, such as -EMFILE.
 */
WEIR_API int weir_shm_names_visit(bool (*visit)(void *arg, const char *name), void *arg);

/* A file that holds a shared limiter. Later versions may append fields. */
struct weir_shm_file {
	const char *name; /* valid during the visit */
	uint32_t owner;   /* the user it belongs to */
	uint32_t group;   /* the group it belongs to */
	uint32_t mode;    /* permission bits, as for chmod() */
};

/*
 * As weir_shm_names_visit(), with the owner of each. Files of users that are not trusted are
 * included.
 */
WEIR_API int weir_shm_files_visit(bool (*visit)(void *arg, const struct weir_shm_file *file),
				  void *arg);

/*
 * Detach: return the waiters and permits of this process, and free the handle and what
 * weir_shm_open() mapped. No call on the handle may be in progress. NULL is allowed, and so is a
 * handle from before a fork. A process that exits without detaching counts as dead, and is reaped.
 */
WEIR_API void weir_shm_detach(struct weir_limiter *limiter);

/* Result of a reaping. */
struct weir_shm_reaped {
	uint32_t processes; /* processes that had died */
	uint32_t permits;   /* permits that they held */
	uint32_t found;     /* permits in flight that no process held any more */
	uint32_t foreign;   /* processes of other pid namespaces, whose state is unknown here */
};

/*
 * Return the permits and waiters of dead processes. Call it from a timer, in one process or in all;
 * several times a second is enough. It asks the kernel about each attached process, which takes
 * some microseconds each, and adds nothing to the path of a call. Fills *reaped (may be NULL).
 *
 * Returns 0, or a negative errno:
 * -EAGAIN: at once, if another thread or process is reaping, which may be stopped.
 * -EACCES: the handle is an observer's.
 * -ESTALE: the handle is from before a fork.
 * -ENOTSUP: the limiter is not shared.
 */
WEIR_API int weir_shm_reap(struct weir_limiter *limiter, struct weir_shm_reaped *reaped);
WEIR_API int weir_shm_reap_at(struct weir_limiter *limiter, weir_time now,
			      struct weir_shm_reaped *reaped);

/*
 * Reap one process by its number, on the caller's word that it is dead: for processes of another
 * pid namespace. It must not be alive: its calls would be mixed up with those of the next process
 * that gets its number.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: no process has that number, or the caller itself has it.
 *
 * Other errors are those of weir_shm_reap().
 */
WEIR_API int weir_shm_evict(struct weir_limiter *limiter, uint32_t number,
			    struct weir_shm_reaped *reaped);

/*
 * Run the callbacks of this process's waiters that other processes have granted permits. If there
 * are none, sleep until there are, or until deadline (on weir_now()'s clock). An event loop without
 * threads calls it from a timer, with a deadline of 0.
 *
 * Returns 0, or a negative errno:
 * -ETIMEDOUT: the deadline came first.
 * -EACCES: the handle is an observer's.
 * -ESTALE: the handle is from before a fork.
 * -ENOTSUP: the limiter is not shared.
 */
WEIR_API int weir_shm_listen(struct weir_limiter *limiter, weir_time deadline);

/* State of an attached process. */
enum weir_shm_life {
	WEIR_SHM_ALIVE,   /* alive, or there is no sign that it is not */
	WEIR_SHM_DEAD,    /* dead and not yet reaped */
	WEIR_SHM_FOREIGN, /* of another pid namespace: unknown from here */
};

/* An attached process. */
struct weir_shm_member {
	uint32_t number; /* number of its lease, from 1 */
	int32_t pid;     /* in its own pid namespace */
	enum weir_shm_life life;
	uint32_t permits;  /* permits that its tokens hold */
	uint32_t calls;    /* calls that hold them */
	uint32_t detached; /* permits of these that raise the limit (WEIR_LIMIT_DETACHED) */
};

/*
 * Visit every attached process. Stops early if visit() returns false. Returns the number visited; 0
 * for a limiter that is not shared.
 */
WEIR_API size_t weir_shm_visit(const struct weir_limiter *limiter,
			       bool (*visit)(void *arg, const struct weir_shm_member *member),
			       void *arg);

/* What a block contains, beyond weir_snapshot_take() and weir/partition.h. */
struct weir_shm_info {
	size_t size;         /* set by weir_shm_info_init() */
	char limit[16];      /* name of the algorithm */
	uint32_t settable;   /* 1: weir_limit_set() moves it */
	uint32_t members;    /* processes that may be attached */
	uint32_t attached;   /* processes that are attached */
	uint32_t number;     /* number of this handle's lease; 0: an observer */
	uint32_t limit_min;  /* as configured */
	uint32_t limit_max;  /* as configured */
	uint32_t queue;      /* as configured */
	uint64_t bytes;      /* size of the block */
	uint64_t deaths;     /* processes reaped since the block was made */
	uint64_t reaped;     /* permits that they held */
	uint64_t found;      /* permits that no process held */
	uint64_t overdrawn;  /* permits that were held but missing in flight, and were added */
	uint32_t order;      /* of the queue, enum weir_order: as configured */
	uint32_t shed;       /* 1: calls are shed by priority */
	uint32_t burst;      /* as configured */
	uint32_t parts;      /* partitions, without partition 0 */
	weir_dur window_min; /* as configured */
	weir_dur window_max; /* as configured */
};

#define weir_shm_info_init(info) weir_shm_info_init_sized((info), sizeof(*(info)))
WEIR_API void weir_shm_info_init_sized(struct weir_shm_info *info, size_t size);

/*
 * Fill info, which weir_shm_info_init() has prepared.
 *
 * Returns 0, or a negative errno:
 * -ENOTSUP: the limiter is not shared.
 * -ESTALE: the handle is from before a fork.
 */
WEIR_API int weir_shm_info_take(const struct weir_limiter *limiter, struct weir_shm_info *info);

#ifdef __cplusplus
}
#endif
#endif
