/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The division of partitions, as docs/hand-over.md has it: once faults are over, every partition has
 * an owner, and no member has more than its due. An inline has the name of its step there.
 *
 * The model begins in any state of the rows, and of what the members know of their own: whatever
 * faults have left behind; some members join, some are stopped, some are dead. From then on there
 * are no more faults: one that comes later leaves such a state behind, too. Members refresh, sessions of the stopped and the dead end, and hand-overs end, each in any
 * order and at any speed. Ownership itself is the subject of ownership.pml; here, commits are carried out
 * or refused at once.
 *
 * IMMORTAL: the session of a stopped member never ends, so what it owns is lost to the others. What
 * it only asks for must not be.
 *
 * Each macro MUTANT_... puts a fault into the protocol.
 */
#define MEMBERS	   3
#define PARTITIONS 2

#define NONE 3 /* no member */

mtype = { running, stopped, dead };
mtype = { none, owned, asked, leaving, given };	    /* a partition, for a member */
mtype = { nothing, taking, requesting, withdrawing }; /* a move of the next commit */

typedef rows_of {
	byte owner = NONE;
	byte requester = NONE;
};

typedef view {
	mtype state = none;
	mtype move = nothing;
	bit reserved; /* free, but for a request of another member, as last read */
};

rows_of row[PARTITIONS];
bit alive[MEMBERS]; /* its session, and its row NAME/worker/ID */
mtype process[MEMBERS] = running;
bit commits[MEMBERS]; /* it has read, and will commit */

/* Promela has no arrays of two dimensions. */
view views[MEMBERS * PARTITIONS];
#define at(m, p) views[(m) * PARTITIONS + (p)]

#define count	   (alive[0] + alive[1] + alive[2])
#define held(m)	   ((row[0].owner == m) + (row[1].owner == m))
#define least	   (PARTITIONS / count)
#define most	   (least + (PARTITIONS % count > 0))
#define short(m)   (alive[m] && held(m) < least)
#define below	   (short(0) + short(1) + short(2))
#define need(m)	   (held(m) < least -> least - held(m) : (held(m) == least && below == 0))
#define is_full	   (row[0].owner != NONE && row[1].owner != NONE)
#define moves(m, w) ((at(m, 0).move == w) + (at(m, 1).move == w))

/* A request lapses if its member does not claim the partition once it can. */
#ifdef MUTANT_RESERVED_FOR_EVER
#define is_reserved(m, p) (row[p].requester != NONE && row[p].requester != m)
#else
#define is_reserved(m, p) \
	(row[p].requester != NONE && row[p].requester != m && !at(m, p).reserved)
#endif

/* Lose what is no longer its own, and gain what is, except for what it has given up. */
inline apply_reading(m)
{
	for (p : 0 .. PARTITIONS - 1) {
		if
		:: row[p].owner != m -> at(m, p).state = none
		:: row[p].owner == m && at(m, p).state == none -> at(m, p).state = owned
		:: else
		fi
	}
	p = 0
}

/* step: notify, forget */
/* An owner with too many begins to finish. Another one forgets the request. */
inline answer_requests(m)
{
	n = held(m);
	for (p : 0 .. PARTITIONS - 1) {
		if
		:: at(m, p).state == asked &&
		   (row[p].requester == NONE || row[p].requester == m || n <= least) ->
			at(m, p).state = owned
		:: at(m, p).state == owned && row[p].requester != NONE && row[p].requester != m &&
		   n > least ->
			at(m, p).state = asked;
			n--
		:: else
		fi
	}
	p = 0;
	n = 0
}

#ifdef MUTANT_NOT_WITHDRAWN
#define WITHDRAWING nothing
#else
#define WITHDRAWING withdrawing
#endif

/* Claim what it has asked for, and else what is free; then ask for what others have too much of. */
inline divide(m)
{
	for (p : 0 .. PARTITIONS - 1) {
		at(m, p).move = nothing;
		if
		:: row[p].owner == NONE && row[p].requester == m &&
		   held(m) + moves(m, taking) < most ->
			at(m, p).move = taking
		:: row[p].owner == NONE && row[p].requester == m &&
		   held(m) + moves(m, taking) >= most ->
			at(m, p).move = WITHDRAWING
		:: else
		fi
	}
	n = (moves(m, taking) == 0 -> need(m) : 0);
	for (p : 0 .. PARTITIONS - 1) {
		if
		:: n > 0 && row[p].owner == NONE && at(m, p).move == nothing &&
		   !is_reserved(m, p) ->
			at(m, p).move = taking;
			n--
		:: else
		fi
	}
	n = 0;
	for (p : 0 .. PARTITIONS - 1) {
		if
		:: row[p].requester != m || row[p].owner == NONE
		:: row[p].requester == m && row[p].owner != NONE &&
		   (row[p].owner == m || held(row[p].owner) <= least ||
		    held(m) + moves(m, taking) + n >= most) ->
			at(m, p).move = WITHDRAWING
		:: else -> n++
		fi
	}
	for (p : 0 .. PARTITIONS - 1) {
		if
		:: is_full && n < need(m) && row[p].owner != m && row[p].requester == NONE &&
		   held(row[p].owner) > least + (held(m) + n >= least) ->
			at(m, p).move = requesting;
			n++
		:: else
		fi
	}
	for (p : 0 .. PARTITIONS - 1) {
		at(m, p).reserved = (row[p].owner == NONE && row[p].requester != NONE &&
				     row[p].requester != m)
	}
	p = 0;
	n = 0
}

#define is_refused(m, p) \
	((at(m, p).move == taking && row[p].owner != NONE) || \
	 (at(m, p).move == requesting && row[p].requester != NONE) || \
	 (at(m, p).move == withdrawing && row[p].requester != m))

/* step: give up, erase, claim, request, withdraw, grant */
/* All of it, or nothing. */
inline commit(m)
{
	for (p : 0 .. PARTITIONS - 1) {
		if
		:: at(m, p).state == leaving -> at(m, p).state = given
		:: else
		fi
	}
	n = alive[m] && !is_refused(m, 0) && !is_refused(m, 1);
	for (p : 0 .. PARTITIONS - 1) {
		if
		:: n && at(m, p).state == given && row[p].owner == m -> row[p].owner = NONE
		:: n && at(m, p).move == taking -> row[p].owner = m; row[p].requester = NONE
		:: n && at(m, p).move == requesting -> row[p].requester = m
		:: n && at(m, p).move == withdrawing -> row[p].requester = NONE
		:: else
		fi;
		at(m, p).move = nothing
	}
	p = 0;
	n = 0;
	commits[m] = 0
}

/* The session is over, or the process is another one. */
inline begin(m)
{
	for (p : 0 .. PARTITIONS - 1) {
		at(m, p).state = none;
		at(m, p).move = nothing;
		at(m, p).reserved = 0
	}
	p = 0;
	commits[m] = 0;
	alive[m] = 1
}

proctype member(byte m)
{
	byte p, n;

	do
	:: d_step {
		process[m] == running && !commits[m] ->
		if
		:: alive[m] ->
			apply_reading(m);
			answer_requests(m);
			divide(m);
			commits[m] = 1
		:: else -> begin(m)
		fi
	   }
	:: d_step { process[m] == running && commits[m] -> commit(m) }
	od
}

#ifndef MUTANT_HAND_OVER_UNBOUNDED
/* step: release */
/* By the application, or as the hand-over ends. */
proctype hand_over(byte m)
{
	do
	:: d_step { process[m] == running && at(m, 0).state == asked -> at(m, 0).state = leaving }
	:: d_step { process[m] == running && at(m, 1).state == asked -> at(m, 1).state = leaving }
	od
}
#endif

#ifdef IMMORTAL
#define may_expire(m) (process[m] == dead)
#else
#define may_expire(m) (process[m] != running)
#endif

/* step: expire */
proctype store(byte m)
{
	byte p;

	do
	:: d_step {
		alive[m] && may_expire(m) ->
		alive[m] = 0;
		for (p : 0 .. PARTITIONS - 1) {
			row[p].owner = (row[p].owner == m -> NONE : row[p].owner);
			row[p].requester = (row[p].requester == m -> NONE : row[p].requester)
		}
		p = 0
	   }
	od
}

/* Any member that has a session, or none. */
inline choose(x)
{
	if
	:: x = NONE
	:: alive[0] -> x = 0
	:: alive[1] -> x = 1
	:: alive[2] -> x = 2
	fi
}

init {
	byte m, p;

	atomic {
		/* step: die */
		/* They are all alike, so their order does not matter. */
		for (m : 0 .. MEMBERS - 1) {
			if
			:: p <= 0 -> alive[m] = 1; p = 0
			:: p <= 1 -> p = 1
			:: p <= 2 -> process[m] = stopped; alive[m] = 1; p = 2
			:: p <= 3 -> process[m] = dead; alive[m] = 1; p = 3
			fi
		}
		p = 0;
		for (p : 0 .. PARTITIONS - 1) {
			choose(row[p].owner);
			choose(row[p].requester);
			m = row[p].owner;
			if
			:: m == NONE
			:: m != NONE && process[m] == dead
			:: m != NONE && process[m] != dead ->
				if
				:: true
				:: at(m, p).state = owned
				:: at(m, p).state = asked
				:: at(m, p).state = leaving
				:: at(m, p).state = given
				fi
			fi
		}
		for (m : 0 .. MEMBERS - 1) {
			run member(m);
			run store(m);
#ifndef MUTANT_HAND_OVER_UNBOUNDED
			run hand_over(m)
#endif
		}
		m = 0;
		p = 0
	}
}

#define runs ((process[0] == running) + (process[1] == running) + (process[2] == running))
#define is_owned(p) \
	(row[p].owner != NONE && process[row[p].owner] == running && \
	 at(row[p].owner, p).state == owned)

#ifdef IMMORTAL
ltl claimed { <> [] (runs < 2 || is_full) }
#else
ltl divided {
	<> [] (runs == 0 ||
	       (is_owned(0) && is_owned(1) && (runs < 2 || row[0].owner != row[1].owner)))
}
#endif
