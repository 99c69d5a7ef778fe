/*
 * weir/shm.h - one limiter for several processes.
 *
 *	if (weir_shm_open("/frontend", 0600, &config, 64, &limiter, why, sizeof(why)) != 0)
 *		die(why);			in each process, after the last fork()
 *	...
 *	weir_try_acquire(limiter, &token)	and all else as ever
 *	...
 *	weir_shm_reap(limiter, NULL);		some times a second, by one or by all
 *
 * Workers of one server that each have a limit have none: their number decides. Here they share
 * one: its permits, its partitions, its queue, and what it learns from the calls of all. It lies in
 * a block of memory that each maps where it likes: by name (weir_shm_open()), or in any shared
 * mapping of the caller's, a memfd or an anonymous one that children inherit (weir_shm_init(),
 * weir_shm_attach()).
 *
 * Trust. A process that can write to a block can disturb all that share it: take every permit, set
 * the limit, keep others waiting. It cannot make them run code of its choice: a block holds no
 * pointer, and a process uses only pointers of its own. (So the state of a limit of the program's
 * own, struct weir_limit_ops, must hold none either.) A process that can write to the file can also
 * truncate it, which ends those that have it mapped by SIGBUS. So a name is opened only if the file
 * is trusted:
 * - It is a regular file, and no link.
 * - Its owner is the effective user of this process or root. weir_shm_open_of() and
 *   weir_shm_open_observer_of() trust one user more, or any.
 * - No other users can write to it, unless the caller trusts them. The caller's mode says which it
 *   trusts: with 0020 it trusts the group of the file, and any owner whose file is of this
 *   process's effective group; with 0002 it trusts every user of the machine. A process that only
 *   looks on also opens a file that the file's group can write to.
 * Any other file, such as one that another user has put under the name, is refused with -EPERM, and
 * neither mapped nor written to. It is for the program to judge a mapping that it has inherited or
 * made itself (weir_shm_attach()).
 *
 * What is a process's own: the handle; observer, gauge, source of chance and tracked tokens
 * (weir_config), of which those of the process that closes a window count; and tokens, which only
 * the process that acquired them may release. Permits are not lent to processors, as those of a
 * limiter of one's own are: so processes on many processors share one word.
 *
 * Death. A process may die at any instruction. What it held is in flight until somebody calls
 * weir_shm_reap(): until then there is less room, and if it was about to close a window or to
 * hand permits to those who wait, the limit stands still, or those who wait do so until their
 * deadlines; if it was about to join the queue, newcomers may be refused as if somebody waited.
 * Who reaps gives back the permits of the dead, takes their waiters out of the queue, goes on
 * with what they were at, and begins the algorithm anew at the limit in force if they died in it.
 * What they had detached raises the limit until then, and no longer (WEIR_LIMIT_DETACHED).
 * Permits on their way between the limiter and a process that died, at most those of one call for
 * each of its threads, are found by comparing all that is in flight with all that is held, for a
 * second at least. So nothing is lost for good. The limit is never exceeded, but for this: a call
 * of a living process that has been stopped for all of that second in the few instructions
 * between the two, while others die, is taken for lost. When it goes on, the limit is exceeded by
 * its permits until the next reaping, which sees that. The same goes for a call stopped
 * as it is detached; and where a process dies as it gives back a detached one's permits, they may
 * raise the limit until it is reaped. If it dies as it detaches a call, the limit may be too low by
 * that until the second is over. Counters may lack the call that a process was counting as it died.
 *
 * No function waits for a process that is dead, whether it has been reaped or not. If one dies
 * while it sets a limit, sets partitions, or owns the window, the next process that needs the same
 * thing finishes the work of the dead one. Its permits and waiters are left to a reaping.
 *
 * Stopping. A process may also be stopped at any instruction, by SIGSTOP or a debugger. Nothing can
 * be taken from it, as it may go on at any time. Meanwhile, calls are admitted, refused and
 * released. If it is stopped while it hands permits to waiters, closes a window, or reaps, no other
 * process does the same until it goes on or dies: waiters wait until their deadlines, the limit
 * stands still, or the permits of dead processes stay in flight (weir_shm_reap() returns -EAGAIN at
 * once). weir_limit_set() and weir_limit_cap() put their values in force all the same; when the
 * stopped process goes on, an older value may be in force for an instant. weir_partitions_set(),
 * weir_limiter_save() and weir_limiter_load() return -EAGAIN after about 20 ms. weir_shm_detach()
 * waits two seconds for a reaper, and then leaves what the process had to a reaping.
 *
 * A process is known by its pid, in its pid namespace, and by when it began. Who is of
 * another pid namespace can only be reaped from there, or by weir_shm_evict(). A process
 * that calls exec() stays alive: let it detach before.
 *
 * Fork. A handle belongs to the process that attached. In a child its memory is zero, by the
 * kernel's doing (MADV_WIPEONFORK, Linux 4.14), so every function that acquires, waits or changes
 * something answers -ESTALE there, weir_release() does nothing, and totals are zero. The child
 * attaches for a handle of its own. A token from before the fork is the parent's: released by the
 * child's handle it does no harm, and is counted (weir_snapshot.double_released).
 *
 * Waiting. Threads in weir_acquire() are woken whichever process makes room. A callback of
 * weir_enqueue() is run by the process that it belongs to: at once, if that process made room; if
 * another did, when a thread of it is in weir_shm_listen(), or never if the waiter is polled
 * first. weir_executor needs such a thread too.
 *
 * Clocks. weir_config.clock must be NULL: times in the block are of CLOCK_MONOTONIC, so all
 * processes are of one time namespace, and a block ends with the machine's run.
 *
 * Any thread may call any function here at any time, but for weir_shm_detach(). None is for signal
 * handlers, observers and grant callbacks. weir_limiter_destroy() detaches, too.
 */
#ifndef WEIR_SHM_H
#define WEIR_SHM_H

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Processes that can share a limiter at once. */
#define WEIR_SHM_MEMBERS_MAX 8192

/*
 * The bytes of a block for that many processes at once; 0 if the configuration is no good, has a
 * clock, or members is 0 or too many. A member costs some hundred bytes, and with partitions
 * 16 more for each.
 */
WEIR_API size_t weir_shm_size(const struct weir_config *config, uint32_t members);

/*
 * Make a limiter in a block, aligned to WEIR_ALIGN as mappings are, whatever is in it. Nobody may
 * be attached to it; afterwards any number of processes attach. 0; or -EINVAL with one sentence
 * in why (may be NULL), cut at why_size: the configuration is no good, or the block too small.
 */
WEIR_API WEIR_MUST_CHECK int weir_shm_init(void *block, size_t size,
					   const struct weir_config *config, uint32_t members,
					   char *why, size_t why_size);

/*
 * Attach to the limiter in a block, which must stay mapped until weir_shm_detach(). config is
 * what it was made with, so that observer and the like are there; a difference in seed or stripes
 * does not count. NULL: whatever it was made with, if the library knows its algorithm.
 * Where all leases are taken, those of the dead are reaped first. On failure *limiter is NULL, with
 * one sentence in why (may be NULL), cut at why_size:
 * -EPROTO: this is no limiter, or a damaged one, or of another version of the library, another
 *   kind of machine, another run of this machine, another algorithm or another configuration;
 * -EINVAL: the configuration is no good, or the block not aligned;
 * -ENOSPC: as many processes as there may be are alive;
 * -ENOMEM, -ENOTSUP: no memory, or none that a child finds wiped.
 */
WEIR_API WEIR_MUST_CHECK int weir_shm_attach(void *block, size_t size,
					     const struct weir_config *config,
					     struct weir_limiter **limiter, char *why,
					     size_t why_size);

/*
 * The same to look on only: no lease is taken, and the mapping may be one that cannot be written.
 * Functions that show something work; those that would change something answer -EACCES.
 * An algorithm that the library does not know shows no numbers of its own.
 */
WEIR_API WEIR_MUST_CHECK int weir_shm_observe(const void *block, size_t size,
					      struct weir_limiter **limiter, char *why,
					      size_t why_size);

/*
 * Attach to the limiter of that name, as shm_open() has names; the first process makes it. mode is
 * the mode of a file that is made, less the umask, and says which users the caller trusts (above).
 * members, as above, counts for the maker only. config may be NULL where the limiter is known to be
 * there. A limiter is published under its name only when it is complete, so no process waits for
 * its maker. One that is there is never made again, and a file that is something else is never
 * overwritten.
 *
 * As weir_shm_attach(); -EPERM: the file belongs to a user who is not trusted, or such users can
 * write to it, and why says which; -EPROTO: it is empty, truncated or no regular file; -EAGAIN:
 * other processes keep making and removing the name; or the negative errno of opening, making and
 * mapping the file: -ENOENT, -EACCES, -ENOSPC, -ENOMEM and others. shm_unlink() removes the name.
 * Where the system has no files without a name (O_TMPFILE), a maker that dies can leave behind a
 * file whose name begins with ".weir-".
 */
WEIR_API WEIR_MUST_CHECK int weir_shm_open(const char *name, unsigned mode,
					   const struct weir_config *config, uint32_t members,
					   struct weir_limiter **limiter, char *why,
					   size_t why_size);

/* The same, to look on only: the file must be readable, and its owner trusted. */
WEIR_API WEIR_MUST_CHECK int weir_shm_open_observer(const char *name, struct weir_limiter **limiter,
						    char *why, size_t why_size);

/* For owner: any user of the machine. Looking on, it also allows a file that any user can write. */
#define WEIR_SHM_ANY_USER UINT32_MAX

/*
 * As weir_shm_open() and weir_shm_open_observer(), where the file may belong to another user: owner is the
 * number of the user that is trusted beside the effective user and root (0: no other), or
 * WEIR_SHM_ANY_USER. This lets a parent that runs as root open what its workers have made, and an
 * administrator what belongs to a service.
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
 * those under which shm_open() finds one. What else lies there is passed over. It reads the first
 * bytes of each file, so weir_shm_open_observer() may yet refuse what it finds: a damaged one, or one of
 * another version. Stops early if visit() answers false. The number visited; or the negative errno
 * of reading the folder.
 */
WEIR_API int weir_shm_names_visit(bool (*visit)(void *arg, const char *name), void *arg);

/* A shared limiter that lies under a name; fields may come behind these. */
struct weir_shm_file {
	const char *name; /* as long as the visit lasts */
	uint32_t owner;   /* the user it belongs to */
	uint32_t group;   /* and the group */
	uint32_t mode;    /* as chmod() has modes */
};

/* The same, with the owner of each; files of users that are not trusted are included. */
WEIR_API int weir_shm_files_visit(bool (*visit)(void *arg, const struct weir_shm_file *file),
				  void *arg);

/*
 * Leave: waiters and permits of this process are given back, the handle is no more, nor is what
 * weir_shm_open() had mapped. No call on the handle may be going on. NULL is allowed, and a
 * handle of before a fork. A process that ends without has died, and is reaped.
 */
WEIR_API void weir_shm_detach(struct weir_limiter *limiter);

/* What a reaping came to. */
struct weir_shm_reaped {
	uint32_t processes; /* that had died */
	uint32_t permits;   /* that they held */
	uint32_t found;     /* permits that nobody held any more */
	uint32_t foreign;   /* processes of other pid namespaces, of which nothing is known here */
};

/*
 * Give back what dead processes had. Call it from a timer, in one process or in all: some times a
 * second is enough. It asks the kernel about each process attached, some microseconds each, and
 * takes no part in any call. 0, and *reaped is filled (may be NULL); -EAGAIN, at once: another
 * thread or process is reaping, and may be stopped; -EACCES, -ESTALE: see above; -ENOTSUP: the
 * limiter is not shared.
 */
WEIR_API int weir_shm_reap(struct weir_limiter *limiter, struct weir_shm_reaped *reaped);
WEIR_API int weir_shm_reap_at(struct weir_limiter *limiter, weir_time now,
			      struct weir_shm_reaped *reaped);

/*
 * Reap one process on the caller's word that it is dead, by its number: for those of another pid
 * namespace. It must not live: its calls would be mixed up with those of whoever gets its number.
 * 0; -EINVAL: nobody has that number, or the caller has; else as weir_shm_reap().
 */
WEIR_API int weir_shm_evict(struct weir_limiter *limiter, uint32_t number,
			    struct weir_shm_reaped *reaped);

/*
 * Run the callbacks of this process's waiters to whom other processes have handed permits; if
 * there are none, sleep until there are, or until deadline (on weir_now()'s clock). 0;
 * -ETIMEDOUT; -EACCES, -ESTALE, -ENOTSUP: as above. A loop without threads calls it from a timer,
 * with a deadline of 0.
 */
WEIR_API int weir_shm_listen(struct weir_limiter *limiter, weir_time deadline);

/* What is known of a process's life. */
enum weir_shm_life {
	WEIR_SHM_ALIVE,   /* or nothing tells otherwise */
	WEIR_SHM_DEAD,    /* and not yet reaped */
	WEIR_SHM_FOREIGN, /* of another pid namespace: it cannot be told from here */
};

/* A process that is attached. */
struct weir_shm_member {
	uint32_t number; /* its lease's, from 1 */
	int32_t pid;     /* in its own namespace */
	enum weir_shm_life life;
	uint32_t permits;  /* that its tokens hold */
	uint32_t calls;    /* that hold them */
	uint32_t detached; /* permits of these that raise the limit (WEIR_LIMIT_DETACHED) */
};

/*
 * Visit every process attached. Stops early if visit() answers false. The number visited; 0 of
 * a limiter that is not shared.
 */
WEIR_API size_t weir_shm_visit(const struct weir_limiter *limiter,
			       bool (*visit)(void *arg, const struct weir_shm_member *member),
			       void *arg);

/* What a block has in it, beside what weir_snapshot_take() and weir/partition.h tell. */
struct weir_shm_info {
	size_t size;         /* set by weir_shm_info_init() */
	char limit[16];      /* the algorithm's name */
	uint32_t settable;   /* 1: weir_limit_set() moves it */
	uint32_t members;    /* that there may be */
	uint32_t attached;   /* of them */
	uint32_t number;     /* of this handle's lease; 0: it looks on */
	uint32_t limit_min;  /* as configured */
	uint32_t limit_max;  /* as configured */
	uint32_t queue;      /* as configured */
	uint64_t bytes;      /* of the block */
	uint64_t deaths;     /* processes reaped since it was made */
	uint64_t reaped;     /* permits that they held */
	uint64_t found;      /* permits that nobody held */
	uint64_t overdrawn;  /* permits that were found too few in flight, and added */
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
 * Fill what weir_shm_info_init() has prepared. 0; -ENOTSUP: the limiter is not shared; -ESTALE: see
 * above.
 */
WEIR_API int weir_shm_info_take(const struct weir_limiter *limiter, struct weir_shm_info *info);

#ifdef __cplusplus
}
#endif
#endif
