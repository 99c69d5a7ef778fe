/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ownership of partitions, as docs/hand-over.md has it: never two owners. An inline has the name of
 * its step there.
 *
 * The model allows more than the code does. A member claims, gives up and loses whenever its state
 * lets it, whatever the division among members would say, and whether another member asks or not.
 * Any process may pause between two of its steps, for any time. So stops of any length are
 * included, and so are kills: a killed process is one that does not go on.
 *
 * A request to the store is carried out when it is sent, or late, or never. That it is on its way
 * for a while is included: to be sent, carried out and then waited for is the same as to be sent
 * later. The answer may come at any time, or not at all. A commit that is late may arrive after the
 * member has given up waiting for it, and after later ones.
 *
 * Time is an order of events. A lease ends at any instant, and so does a hand-over. Of clocks, only
 * what the lease's margin is for is assumed: a session ends in the store after its member's lease
 * has ended by the member's clock.
 *
 * These bound the model:
 *
 * PARTITIONS   with three members
 * CLAIMS       how often partition 0 is claimed; partition 1 is claimed once less
 * LATE         commits that may be late at the same time: one claims or erases, others are
 *              checkpoints
 * CHECKPOINTS  how many are written for partition 0
 * FORGETS      how often the store loses everything
 * REWINDS      how often the checkpoint of partition 0 is set back
 *
 * Each macro MUTANT_... puts a fault into the protocol.
 */
#define MEMBERS 3
#ifndef PARTITIONS
#define PARTITIONS 2
#endif
#ifndef CLAIMS
#define CLAIMS 2
#endif
#ifndef LATE
#define LATE 1
#endif
#ifndef CHECKPOINTS
#define CHECKPOINTS 0
#endif
#ifndef FORGETS
#define FORGETS 0
#endif
#ifndef REWINDS
#define REWINDS 0
#endif

#define NONE 3 /* no member */

mtype = { quiet, reading, claiming, erasing, saving };

/* The rows of a partition. */
typedef rows_of {
	byte owner = NONE;
	byte made;     /* the commit that made the owner's row: its fence */
	byte claims;   /* the last fence that was made */
	byte sequence; /* of the checkpoint */
	byte version;  /* of the checkpoint's row */
#if REWINDS
	byte refused; /* in the checkpoint's row: the fence from which it was set back */
	byte noted;   /* the row rewound: the same, until the owner's row is erased; 0: none */
	byte voided;   /* no row: the fence by which nothing may be written any more */
#endif
};

/* What a member knows of a partition. */
typedef view {
	byte fence; /* by which it owns the partition, while its lease lasts; 0: it does not */
	byte given; /* which it has given up, and whose row may still be there; 0: none */
	byte read;  /* the fence of its own row, in the answer under way; 0: there is none */
#if REWINDS
	bit noted; /* and that its checkpoint was set back */
#endif
};

/* An answer that a member waits for. */
typedef answer {
	mtype to = quiet;
	bit fresh; /* to a reading: its lease has not ended */
	bit good;  /* the session is alive, and all checks have passed */
	bit old;   /* from a store that was lost since */
	byte number;
	byte fence; /* that a claim has made */
};

/* A commit that is late. */
typedef commit {
	mtype what = quiet;
	byte sender;
	byte number; /* of the partition */
	byte fence;  /* which it checks */
	byte version, sequence;
};

rows_of row[PARTITIONS];
bit alive[MEMBERS]; /* its session, in the store */
bit learning;       /* the store may have forgotten an owner */
byte forgotten;     /* how often it has lost everything */

bit lease[MEMBERS]; /* has not ended, by the member's own clock */
bit old[MEMBERS];   /* it is of a store that was lost */
answer due[MEMBERS];
commit late[LATE];
byte saves; /* checkpoints that were sent */

/*
 * All members are alike. So those that have claimed a partition before are the first ones, without
 * loss of generality. A late claim might as well be sent just before it arrives.
 */
byte claimers;

/* Promela has no arrays of two dimensions. */
view views[MEMBERS * PARTITIONS];
#define at(m, p) views[(m) * PARTITIONS + (p)]

#define owns(m, p) (at(m, p).fence != 0 && lease[m])

/* Ownership begins in gain and keep alone, so it is enough to look there. */
inline check_one_owner(p)
{
	assert(!(owns(0, p) && owns(1, p)) && !(owns(0, p) && owns(2, p)) &&
	       !(owns(1, p) && owns(2, p)))
}

inline clear(x)
{
	x.what = quiet;
	x.sender = 0;
	x.number = 0;
	x.fence = 0;
	x.version = 0;
	x.sequence = 0
}

inline clear_answer(m)
{
	due[m].to = quiet;
	due[m].fresh = 0;
	due[m].good = 0;
	due[m].old = 0;
	due[m].number = 0;
	due[m].fence = 0;
	for (i : 0 .. PARTITIONS - 1) {
		at(m, i).read = 0;
#if REWINDS
		at(m, i).noted = 0
#endif
	}
	i = 0
}

/*
 * Steps of a member.
 */

#ifdef MUTANT_REGAINED
#define is_given_up(m, p, by) false
#else
#define is_given_up(m, p, by) (by == at(m, p).given)
#endif

inline gain(m, p, by)
{
	if
	:: by != 0 && at(m, p).fence == 0 && lease[m] && !is_given_up(m, p, by) ->
		at(m, p).fence = by;
		check_one_owner(p)
	:: else
	fi
}

inline lose(m, p)
{
	at(m, p).fence = 0
}

/* The fence is remembered for as long as the row may be there. */
inline give_up(m, p)
{
	at(m, p).given = at(m, p).fence;
	at(m, p).fence = 0
}

/* The lease counts from before the request was sent. */
inline keep(m)
{
#ifdef MUTANT_LEASE_OF_ANSWER
	lease[m] = 1;
#else
	lease[m] = lease[m] | due[m].fresh;
#endif
	for (i : 0 .. PARTITIONS - 1) {
		check_one_owner(i)
	}
}

/* The last reading decides what is owned, and whether a row that was given up is gone. */
inline apply_reading(m)
{
	for (i : 0 .. PARTITIONS - 1) {
		if
		:: at(m, i).read != at(m, i).fence -> lose(m, i)
		:: else
		fi;
#if REWINDS
		/* The fence is void. It is given up, whether the partition was owned by it or not. */
		if
		:: at(m, i).noted ->
			lose(m, i);
			at(m, i).given = at(m, i).read
		:: else
		fi;
#endif
		gain(m, i, at(m, i).read);
		if
		:: at(m, i).read != at(m, i).given -> at(m, i).given = 0
		:: else
		fi
	}
}

/* step: join */
/* Its session is over, and all rows with it. It goes on in another one, under a new number. */
inline begin(m)
{
	for (i : 0 .. PARTITIONS - 1) {
		lose(m, i);
		at(m, i).given = 0
	}
	lease[m] = 0;
	old[m] = 0;
	alive[m] = 1
}

/*
 * Steps of the store.
 */

#ifdef MUTANT_TAKEN_AFTER_REQUEST
/* The member that asks counts the hand-over from its request, and takes the partition after it. */
#define may_claim(p) true
#else
#define may_claim(p) (row[p].owner == NONE)
#endif

/* The row is made only where there is none, and bound to the session. */
inline claim(m, p, f)
{
	if
	:: alive[m] && may_claim(p) && row[p].claims < CLAIMS - p ->
		row[p].claims++;
		row[p].owner = m;
		row[p].made = row[p].claims;
		f = row[p].made;
		claimers = (claimers == m -> m + 1 : claimers)
	:: else
	fi
}

/* The row is erased by its number. */
inline erase(m, p, f)
{
	if
	:: alive[m] && row[p].owner == m && row[p].made == f ->
		row[p].owner = NONE;
		row[p].made = 0;
#if REWINDS
		row[p].noted = 0 /* step: clear */
#endif
	:: else
	fi
}

#ifdef MUTANT_FENCE_UNCHECKED
#define is_fenced(p, f) true
#else
#define is_fenced(p, f) (row[p].owner != NONE && row[p].made == f)
#endif
#ifdef MUTANT_VERSION_UNCHECKED
#define is_known(p, v) true
#else
#define is_known(p, v) (row[p].version == v)
#endif
#if !REWINDS || defined(MUTANT_SET_BACK_UNREAD)
#define is_set_back(p, f) false
#else
#define is_set_back(p, f) (row[p].refused == f)
#endif

/* A checkpoint checks the owner's row, and the version of its own. */
inline save(m, p, f, v, s)
{
	if
	:: is_fenced(p, f) && is_known(p, v) ->
		assert(f == row[p].claims);
		assert(s >= row[p].sequence);
#if REWINDS
		assert(f != row[p].voided);
#endif
		row[p].sequence = s;
		row[p].version++
	:: !is_fenced(p, f) && at(m, p).fence == f ->
		lose(m, p) /* step: refuse */
#if REWINDS
	:: is_fenced(p, f) && !is_known(p, v) && is_set_back(p, f) && at(m, p).fence == f ->
		give_up(m, p) /* found by reading the checkpoint again */
#endif
	:: else
	fi
}

#if REWINDS
#define fence_of(p) (row[p].owner == NONE -> 0 : row[p].made)
/* The commit checks the owner's row or, where there was none, that there is none, and the version. */
#define may_set_back(p, f, v) (fence_of(p) == f && (f != 0 || row[p].version == v))

/* A checkpoint of nothing is a row as well. */
inline set_back(p, f, v)
{
	if
	:: may_set_back(p, f, v) ->
		row[p].sequence = 0;
#ifdef MUTANT_SET_BACK_ERASES
		row[p].version = 0;
#else
		row[p].version++;
#endif
		row[p].refused = f;
		row[p].noted = (f != 0 -> f : row[p].noted);
		row[p].voided = f
	:: else
	fi
}
#endif

inline erase_bound_rows(m)
{
	for (i : 0 .. PARTITIONS - 1) {
		if
		:: row[i].owner == m -> row[i].owner = NONE; row[i].made = 0
		:: else
		fi
	}
	i = 0
}

/* Of a session that is over. A checkpoint names none: it checks the owner's row. */
inline refuse_late(m)
{
	for (i : 0 .. LATE - 1) {
		if
		:: late[i].what != quiet && late[i].what != saving && late[i].sender == m ->
			clear(late[i])
		:: else
		fi
	}
	i = 0
}

inline send_late(w, m, p, f)
{
	late[0].what = w;
	late[0].sender = m;
	late[0].number = p;
	late[0].fence = f
}

#ifdef MUTANT_NO_MARGIN
#define is_over(m) true
#else
#define is_over(m) (!lease[m] && !(due[m].fresh && due[m].good))
#endif

/* A member, its clock, and its session in the store. */
proctype member(byte m)
{
	byte i;

	do
	/* A refresh keeps the session and reads all rows. */
	:: d_step {
		due[m].to == quiet ->
		due[m].to = reading;
		due[m].good = alive[m];
		due[m].fresh = alive[m];
		for (i : 0 .. PARTITIONS - 1) {
			at(m, i).read = ((alive[m] && row[i].owner == m) -> row[i].made : 0);
#if REWINDS
			at(m, i).noted = at(m, i).read != 0 && row[i].noted == at(m, i).read
#endif
		}
		i = 0
	   }
	:: d_step {
		due[m].to == reading ->
		if
		:: due[m].good ->
			old[m] = old[m] | due[m].old;
			keep(m);
			apply_reading(m)
		:: else -> begin(m)
		fi;
		clear_answer(m)
	   }
	:: d_step {
		due[m].to == claiming -> gain(m, due[m].number, due[m].fence);
		clear_answer(m)
	   }
	/* The answer does not come. */
	:: d_step { due[m].to != quiet -> clear_answer(m) }

	/* Of two leases, the one that counts from a later request ends later. */
	:: d_step { lease[m] -> lease[m] = 0; old[m] = 0 }
	:: d_step { due[m].fresh && !lease[m] -> due[m].fresh = 0 }

	/* step: expire */
	:: d_step {
		alive[m] && is_over(m) ->
		alive[m] = 0;
		erase_bound_rows(m);
		refuse_late(m)
	   }
	od
}

#define may_send(m, p) \
	(due[m].to == quiet && at(m, p).fence == 0 && at(m, p).given == 0 && alive[m] && \
	 !learning && m <= claimers)

#ifdef MUTANT_ERASED_WHILE_OWNED
#define to_erase(m, p) (at(m, p).given != 0 -> at(m, p).given : at(m, p).fence)
#else
#define to_erase(m, p) at(m, p).given
#endif

/* What a member does about one partition, between two readings. */
proctype hand(byte m; byte p)
{
	byte f;

	do
	/* Where the last reading shows no row of its own. The commit is answered, or late. */
	:: d_step {
		may_send(m, p) ->
		claim(m, p, f);
		if
		:: f != 0 ->
			due[m].to = claiming;
			due[m].number = p;
			due[m].fence = f;
			f = 0
		:: else
		fi
	   }
	:: d_step { may_send(m, p) && late[0].what == quiet -> send_late(claiming, m, p, 0) }
	/* step: end, close, leave */
	/* By release, by a hand-over that has ended, or for good. */
	:: d_step { at(m, p).fence != 0 -> give_up(m, p) }
	/* What was given up is erased by a commit, again until a reading shows that it is gone. */
	:: d_step {
		due[m].to == quiet && to_erase(m, p) != 0 ->
		f = to_erase(m, p);
		erase(m, p, f);
		f = 0
	   }
	:: d_step {
		due[m].to == quiet && to_erase(m, p) != 0 && late[0].what == quiet ->
		f = to_erase(m, p);
		send_late(erasing, m, p, f);
		f = 0
	   }
	/* step: lapse, drop */
	/* The watcher notices at any later time that the lease has ended. */
	:: d_step { at(m, p).fence != 0 && !lease[m] -> lose(m, p) }
#if CHECKPOINTS
	/* It knows the row of the last one. Whether it owns the partition is seen on arrival. */
	:: d_step {
		at(m, p).fence != 0 && row[p].owner == m && row[p].made == at(m, p).fence &&
		!is_set_back(p, at(m, p).fence) && saves < CHECKPOINTS && late[saves % LATE].what == quiet ->
		f = saves % LATE;
		late[f].version = row[p].version;
		late[f].sequence = saves + 1;
		late[f].what = saving;
		late[f].sender = m;
		late[f].number = p;
		late[f].fence = at(m, p).fence;
		f = 0;
		saves++
	   }
#endif
	od
}

/* A commit that is late arrives, or does not. */
proctype post(byte k)
{
	byte m, p, f, v, s;

	do
	:: d_step {
		late[k].what != quiet ->
		m = late[k].sender;
		p = late[k].number;
		f = late[k].fence;
		v = late[k].version;
		s = late[k].sequence;
		if
		:: late[k].what == claiming -> claim(m, p, f)
		:: late[k].what == erasing -> erase(m, p, f)
#if CHECKPOINTS
		:: late[k].what == saving -> save(m, p, f, v, s)
#endif
		fi;
		clear(late[k]);
		m = 0;
		p = 0;
		f = 0;
		v = 0;
		s = 0
	   }
	:: d_step { late[k].what != quiet -> clear(late[k]) }
	od
}

#if REWINDS
/* A program that sets the checkpoint back. Its commit, too, arrives at any time after its reading. */
proctype operator()
{
	byte f, v, rewinds;
	bit sent;

	do
	:: d_step {
		!sent && rewinds < REWINDS ->
		f = fence_of(0);
		v = row[0].version;
		rewinds++;
		sent = 1
	   }
	:: d_step {
		sent -> set_back(0, f, v);
		f = 0;
		v = 0;
		sent = 0
	   }
	od
}
#endif

#if FORGETS
#define is_unknown(m) ((old[m] && lease[m]) || (due[m].old && due[m].fresh))

/* A store that loses everything is another one, which refuses what was meant for the last one. */
proctype fate()
{
	byte i, n;

	do
	/* step: empty */
	:: d_step {
		forgotten < FORGETS ->
		forgotten++;
#ifndef MUTANT_NOT_LEARNED
		learning = 1;
#endif
		for (n : 0 .. MEMBERS - 1) {
			old[n] = lease[n];
			due[n].old = due[n].good;
			alive[n] = 0;
			erase_bound_rows(n);
			refuse_late(n)
		}
		n = 0
	   }
	/* It learns for as long as there may be a lease that it does not know of. */
	:: d_step { learning && !is_unknown(0) && !is_unknown(1) && !is_unknown(2) -> learning = 0 }
	od
}
#endif

init {
	byte m, p;

	atomic {
		for (m : 0 .. MEMBERS - 1) {
			run member(m);
			for (p : 0 .. PARTITIONS - 1) {
				run hand(m, p)
			}
		}
		for (p : 0 .. LATE - 1) {
			run post(p)
		}
#if FORGETS
		run fate();
#endif
#if REWINDS
		run operator();
#endif
		m = 0;
		p = 0
	}
}
