/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Histories, views and races. memory.h names the model.
 *
 * Only words that several threads use, and at least one of them writes, have a history; operations
 * on other words are no steps that matter to anybody else. Which words are shared is learned:
 * when a second thread comes to a word, exploring begins again with that word as a shared one. A
 * word that a mortal thread writes is shared at once: it may die before or after it, and only then
 * may others come to that word.
 */

#include "tests/interleave/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/interleave/schedule.h"
#include "tests/interleave/states.h"
#include "tests/interleave/trace.h"

#define PLACES   8192 /* words with atomic operations */
#define AREAS    (1u << 15)
#define MESSAGES 16384
#define CELLS    (1u << 16) /* bytes that threads access */
#define FIRST    (1u << 12) /* place of the first store in a history */
#define GAP      (1u << 10) /* between stores, for those that come in between */
#define NIL      0

/* A word with atomic operations, and the threads that read and write it. */
struct place {
	uintptr_t address;
	uint8_t readers, writers;
	int location; /* -1: not shared */
};

/*
 * Eight bytes, and how threads access them. They are looked at for races when two threads do, one of
 * them writes, and one of them does not do so atomically.
 */
struct area {
	uintptr_t number; /* address / 8 */
	uint8_t plain, atomic;
	bool written, watched;
};

/* A store in a history. */
struct message {
	uint64_t value, id;
	uint32_t at; /* its place */
	uint32_t older, newer;
	uint32_t view; /* what an acquire load of it adds; 0: nothing */
	bool updated;  /* a read-modify-write follows it, and nothing may come in between */
};

struct location {
	uint32_t newest; /* NIL: not used in this run yet */
	uint8_t size;
	bool overwritten; /* by a plain store */
};

/* A byte: when each thread last accessed it, by its own clock. */
enum access { PLAIN_READ, PLAIN_WRITE, ATOMIC_READ, ATOMIC_WRITE, ACCESSES };

struct cell {
	uintptr_t address;
	uint32_t run;
	uint32_t when[ACCESSES][FIBERS];
	const void *pc;
};

static struct place places[PLACES];
static struct area areas[AREAS];
static uintptr_t shared[LOCATIONS];
static unsigned shared_count;

static struct location locations[LOCATIONS];
static struct message messages[MESSAGES];
static struct view views[MESSAGES];
static uint32_t message_count, view_count;

static struct cell cells[CELLS];
static uint32_t run, cell_count;

/* Of each thread: what it has seen, what an acquire fence would add, what a release fence left. */
static struct view seen[FIBERS], offered[FIBERS], fenced[FIBERS];
static bool has_fenced[FIBERS];
static struct view total; /* what seq_cst operations have seen */
static uint64_t total_id; /* identifies the last of them */

static void view_join(struct view *to, const struct view *from)
{
	for (unsigned i = 0; i < FIBERS; i++)
		if (to->clock[i] < from->clock[i])
			to->clock[i] = from->clock[i];
	for (unsigned i = 0; i < shared_count; i++)
		if (to->at[i] < from->at[i])
			to->at[i] = from->at[i];
}

static void view_copy(struct view *to, const struct view *from)
{
	memcpy(to->clock, from->clock, sizeof(to->clock));
	memcpy(to->at, from->at, shared_count * sizeof(to->at[0]));
}

static void view_clear(struct view *view)
{
	memset(view->clock, 0, sizeof(view->clock));
	memset(view->at, 0, shared_count * sizeof(view->at[0]));
}

void memory_reset(void)
{
	memset(locations, 0, shared_count * sizeof(locations[0]));
	message_count = view_count = 1;
	view_clear(&total);
	total_id = 0;
	if (++run == 0)
		abort();
	cell_count = 0;
}

void memory_begin(unsigned thread, int parent)
{
	view_clear(&seen[thread]);
	view_clear(&offered[thread]);
	has_fenced[thread] = false;
	if (parent >= 0) {
		view_copy(&seen[thread], &seen[parent]);
		seen[parent].clock[parent]++;
	}
	seen[thread].clock[thread] = 1;
}

void memory_join(unsigned thread, unsigned ended)
{
	view_join(&seen[thread], &seen[ended]);
}

void memory_release(unsigned thread, struct view *to)
{
	view_join(to, &seen[thread]);
	seen[thread].clock[thread]++;
}

void memory_leave(unsigned thread, struct view *to)
{
	for (unsigned i = 0; i < shared_count; i++)
		if (to->at[i] < seen[thread].at[i])
			to->at[i] = seen[thread].at[i];
}

void memory_acquire(unsigned thread, const struct view *from)
{
	view_join(&seen[thread], from);
}

static struct place *place_of(uintptr_t address)
{
	unsigned i = (unsigned)(address >> 1) * 2654435761u % PLACES;

	for (unsigned tries = 0; tries < PLACES; tries++, i = (i + 1) % PLACES) {
		if (places[i].address == address)
			return &places[i];
		if (places[i].address == 0) {
			places[i] = (struct place){.address = address, .location = -1};
			return &places[i];
		}
	}
	explore_fail("more than %d words with atomic operations", PLACES);
}

static void share(struct place *place)
{
	if (shared_count == LOCATIONS)
		explore_fail("more than %d words are shared", LOCATIONS);
	place->location = (int)shared_count;
	shared[shared_count++] = place->address;
}

void memory_forget(void)
{
	memset(places, 0, sizeof(places));
	memset(areas, 0, sizeof(areas));
	shared_count = 0;
}

/* Note who uses a word. Returns its location, or -1. */
static int learn(uintptr_t address, bool writes)
{
	const uint8_t self = (uint8_t)(1u << schedule_self());
	struct place *place = place_of(address);
	uint8_t all;

	if (place->location >= 0)
		return place->location;
	place->readers |= self;
	if (writes)
		place->writers |= self;
	all = place->readers | place->writers;
	if (place->writers == 0 || ((all & (all - 1)) == 0 && !(writes && schedule_is_mortal())))
		return -1;
	share(place);
	schedule_learned();
}

static uint64_t read_memory(const volatile void *address, unsigned size)
{
	switch (size) {
	case 1:
		return *(const volatile uint8_t *)address;
	case 2:
		return *(const volatile uint16_t *)address;
	case 4:
		return *(const volatile uint32_t *)address;
	default:
		return *(const volatile uint64_t *)address;
	}
}

static void write_memory(volatile void *address, unsigned size, uint64_t value)
{
	switch (size) {
	case 1:
		*(volatile uint8_t *)address = (uint8_t)value;
		break;
	case 2:
		*(volatile uint16_t *)address = (uint16_t)value;
		break;
	case 4:
		*(volatile uint32_t *)address = (uint32_t)value;
		break;
	default:
		*(volatile uint64_t *)address = value;
	}
}

static struct cell *cell_of(uintptr_t address)
{
	unsigned i = (unsigned)(address * 2654435761u) % CELLS;

	for (; cells[i].run == run; i = (i + 1) % CELLS)
		if (cells[i].address == address)
			return &cells[i];
	if (++cell_count > CELLS / 2)
		explore_fail("threads access more than %u bytes", CELLS / 2);
	cells[i] = (struct cell){.address = address, .run = run};
	return &cells[i];
}

_Noreturn static void report_race(const struct cell *cell, const volatile void *address,
				  unsigned other, const void *pc)
{
	const unsigned self = schedule_self();

	trace_add(&(struct step){.thread = self, .what = "races", .address = address, .pc = pc});
	trace_add(&(struct step){
		.thread = other, .what = "with this", .address = address, .pc = cell->pc});
	explore_fail("data race of threads %u and %u at %#" PRIxPTR, other, self, cell->address);
}

static struct area *area_of(uintptr_t number)
{
	unsigned i = (unsigned)(number * 2654435761u) % AREAS;

	for (unsigned tries = 0; tries < AREAS; tries++, i = (i + 1) % AREAS) {
		if (areas[i].number == number)
			return &areas[i];
		if (areas[i].number == 0) {
			areas[i].number = number;
			return &areas[i];
		}
	}
	explore_fail("threads access more than %u bytes", AREAS * 8);
}

/* Note who accesses the area. Whether it is watched. */
static bool watch(uintptr_t number, enum access access)
{
	const uint8_t self = (uint8_t)(1u << schedule_self());
	struct area *area = area_of(number);
	uint8_t all;

	if (access == PLAIN_READ || access == PLAIN_WRITE)
		area->plain |= self;
	else
		area->atomic |= self;
	area->written |= access == PLAIN_WRITE || access == ATOMIC_WRITE;
	if (area->watched)
		return true;
	all = area->plain | area->atomic;
	if (!area->written || area->plain == 0 || (all & (all - 1)) == 0)
		return false;
	area->watched = true;
	schedule_learned();
}

static void forget_thread(struct cell *cell, unsigned thread)
{
	for (unsigned i = 0; i < ACCESSES; i++)
		cell->when[i][thread] = 0;
}

static void check_byte(const volatile void *address, uintptr_t byte, enum access access,
		       const void *pc)
{
	/* What each kind of access must not be concurrent with; ACCESSES ends a list. */
	static const enum access conflicts[ACCESSES][4] = {
		[PLAIN_READ] = {PLAIN_WRITE, ATOMIC_WRITE, ACCESSES},
		[PLAIN_WRITE] = {PLAIN_READ, PLAIN_WRITE, ATOMIC_READ, ATOMIC_WRITE},
		[ATOMIC_READ] = {PLAIN_WRITE, ACCESSES},
		[ATOMIC_WRITE] = {PLAIN_READ, PLAIN_WRITE, ACCESSES},
	};
	const unsigned self = schedule_self(), threads = schedule_threads();
	struct cell *cell = cell_of(byte);

	for (unsigned other = 0; other < threads; other++)
		if ((access == PLAIN_WRITE || access == ATOMIC_WRITE) && explore_died(other))
			forget_thread(cell, other);
	for (unsigned i = 0; i < 4 && conflicts[access][i] != ACCESSES; i++)
		for (unsigned other = 0; other < threads; other++)
			if (cell->when[conflicts[access][i]][other] > seen[self].clock[other] &&
			    other != self)
				report_race(cell, address, other, pc);
	cell->when[access][self] = seen[self].clock[self];
	cell->pc = pc;
}

static void check_races(const volatile void *address, size_t size, enum access access,
			const void *pc)
{
	const uintptr_t end = (uintptr_t)address + size;

	for (uintptr_t byte = (uintptr_t)address; byte < end;) {
		const uintptr_t next = (byte / 8 + 1) * 8 < end ? (byte / 8 + 1) * 8 : end;

		if (watch(byte / 8, access))
			for (uintptr_t i = byte; i < next; i++)
				check_byte(address, i, access, pc);
		byte = next;
	}
}

void memory_plain(const volatile void *address, size_t size, bool writes, const void *pc)
{
	if (!schedule_running())
		return;
	check_races(address, size, writes ? PLAIN_WRITE : PLAIN_READ, pc);
	for (unsigned i = 0; writes && i < shared_count; i++)
		if (shared[i] >= (uintptr_t)address && shared[i] < (uintptr_t)address + size)
			locations[i].overwritten = true;
}

static uint32_t view_new(void)
{
	if (view_count == MESSAGES)
		explore_fail("more than %d stores", MESSAGES);
	return view_count++;
}

/* A store between two others of a history; either may be missing. */
static uint32_t message_new(uint32_t older, uint32_t newer, uint64_t value)
{
	const uint32_t i = message_count++;
	struct message *m = &messages[i];

	if (i == MESSAGES)
		explore_fail("more than %d stores", MESSAGES);
	*m = (struct message){.value = value, .older = older, .newer = newer};
	if (older == NIL)
		m->at = FIRST;
	else if (newer == NIL)
		m->at = messages[older].at + GAP;
	else
		m->at = messages[older].at + (messages[newer].at - messages[older].at) / 2;
	if (newer != NIL && m->at == messages[older].at)
		explore_fail("too many stores came between two others");
	if (older != NIL)
		messages[older].newer = i;
	if (newer != NIL)
		messages[newer].older = i;
	return i;
}

/*
 * The word's history, which begins with what is in memory. After a plain store it begins again, at a
 * place beyond all that threads have seen.
 */
static struct location *history_of(int location, void *address, unsigned size)
{
	struct location *l = &locations[location];

	if (l->newest == NIL || l->overwritten) {
		const uint32_t before = l->newest;

		l->newest = message_new(NIL, NIL, read_memory(address, size));
		if (before != NIL)
			messages[l->newest].at = messages[before].at + GAP;
		messages[l->newest].id = digest_mix(2, messages[l->newest].value);
		l->size = (uint8_t)size;
		l->overwritten = false;
	}
	if (l->size != size)
		explore_fail("atomic operations of %u and %u bytes on %p", l->size, size, address);
	return l;
}

static bool acquires(int order)
{
	return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME ||
	       order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static bool releases(int order)
{
	return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static const char *order_name(int order, bool stale)
{
	static const char *const names[2][6] = {
		{"relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"},
		{"relaxed, stale", "consume, stale", "acquire, stale", "release, out of order",
		 "acq_rel, stale", "seq_cst, stale"},
	};

	return names[stale][order % 6];
}

/* Before and after an operation of that order: what seq_cst adds. */
static void order_totally(unsigned self, int order)
{
	if (order != __ATOMIC_SEQ_CST)
		return;
	view_join(&seen[self], &total);
	view_join(&total, &seen[self]);
	total_id = schedule_did('T', total_id);
}

static void see(unsigned self, int location, const struct message *m, int order)
{
	if (seen[self].at[location] < m->at)
		seen[self].at[location] = m->at;
	if (m->view != 0)
		view_join(acquires(order) ? &seen[self] : &offered[self], &views[m->view]);
}

/* The view that a store carries; base: the store that a read-modify-write continues, or 0. */
static void carry(unsigned self, struct message *m, int order, uint32_t base)
{
	if (!releases(order) && !has_fenced[self] && base == 0)
		return;
	m->view = view_new();
	view_clear(&views[m->view]);
	if (base != 0)
		view_join(&views[m->view], &views[base]);
	if (releases(order)) {
		view_join(&views[m->view], &seen[self]);
		seen[self].clock[self]++;
	} else if (has_fenced[self]) {
		view_join(&views[m->view], &fenced[self]);
	}
}

static void write_newest(const struct location *l, void *address)
{
	write_memory(address, l->size, messages[l->newest].value);
}

static void mark_access(void *address, unsigned size, bool writes, const void *pc)
{
	check_races(address, size, writes ? ATOMIC_WRITE : ATOMIC_READ, pc);
}

/*
 * The store that a load returns: the newest one, or an older one that the thread may still see.
 * Those for which skip holds are left out; NIL if there is none.
 */
static uint32_t choose_store(unsigned self, int location, const struct location *l,
			     bool (*skip)(const struct message *m, uint64_t with), uint64_t with)
{
	uint32_t found[32];
	unsigned count = 0, choice;

	for (uint32_t i = l->newest; i != NIL && count < 32; i = messages[i].older) {
		if (messages[i].at < seen[self].at[location])
			break;
		if (skip == NULL || !skip(&messages[i], with))
			found[count++] = i;
		if (!schedule_may_be_stale())
			break;
	}
	if (count == 0)
		return NIL;
	choice = schedule_choose(count);
	if (found[choice] != l->newest)
		schedule_was_stale();
	return found[choice];
}

uint64_t memory_load(void *address, unsigned size, int order, const void *pc)
{
	const unsigned self = schedule_self();
	int location;
	struct location *l;
	uint32_t i;

	if (!schedule_running() || (location = learn((uintptr_t)address, false)) < 0)
		return read_memory(address, size);
	schedule_point(pc);
	mark_access(address, size, false, pc);
	l = history_of(location, address, size);
	order_totally(self, order);
	i = choose_store(self, location, l, NULL, 0);
	see(self, location, &messages[i], order);
	order_totally(self, order);
	schedule_did('l', messages[i].id);
	schedule_read(pc, messages[i].id);
	trace_add(&(struct step){.thread = self,
				 .what = "load",
				 .address = address,
				 .before = messages[i].value,
				 .note = order_name(order, i != l->newest),
				 .pc = pc});
	return messages[i].value;
}

/* Where a store comes in the history: at its end, or before others that are not known yet. */
static uint32_t choose_older(unsigned self, int location, const struct location *l)
{
	uint32_t found[32];
	unsigned count = 1, choice;

	found[0] = l->newest;
	for (uint32_t i = l->newest; schedule_may_be_stale() && count < 32; i = found[count++]) {
		const uint32_t older = messages[i].older;

		if (older == NIL || messages[i].at <= seen[self].at[location] ||
		    messages[older].updated)
			break;
		found[count] = older;
	}
	choice = schedule_choose(count);
	if (choice > 0)
		schedule_was_stale();
	return found[choice];
}

static uint32_t add_store(unsigned self, int location, struct location *l, uint32_t older,
			  uint64_t value)
{
	const uint32_t i = message_new(older, messages[older].newer, value);

	if (older == l->newest)
		l->newest = i;
	seen[self].at[location] = messages[i].at;
	schedule_wrote();
	return i;
}

void memory_store(void *address, unsigned size, uint64_t value, int order, const void *pc)
{
	const unsigned self = schedule_self();
	int location;
	struct location *l;
	uint32_t older, i;

	if (!schedule_running() || (location = learn((uintptr_t)address, true)) < 0) {
		write_memory(address, size, value);
		return;
	}
	schedule_point(pc);
	mark_access(address, size, true, pc);
	l = history_of(location, address, size);
	order_totally(self, order);
	older = choose_older(self, location, l);
	i = add_store(self, location, l, older, value);
	carry(self, &messages[i], order, 0);
	order_totally(self, order);
	messages[i].id = schedule_did('s', messages[older].id);
	trace_add(&(struct step){.thread = self,
				 .what = "store",
				 .address = address,
				 .before = messages[older].value,
				 .after = value,
				 .note = order_name(order, i != l->newest),
				 .pc = pc,
				 .writes = 1});
	write_newest(l, address);
}

static uint64_t computed(enum rmw op, uint64_t value, uint64_t operand, unsigned size)
{
	const uint64_t mask = size == 8 ? UINT64_MAX : (UINT64_C(1) << size * 8) - 1;

	switch (op) {
	case RMW_EXCHANGE:
		return operand & mask;
	case RMW_ADD:
		return (value + operand) & mask;
	case RMW_SUB:
		return (value - operand) & mask;
	case RMW_AND:
		return value & operand & mask;
	case RMW_OR:
		return (value | operand) & mask;
	case RMW_XOR:
		return (value ^ operand) & mask;
	default:
		return ~(value & operand) & mask;
	}
}

/*
 * Whether the operation can change nothing, whatever it finds. A compiler may make a load of it, or
 * less if its value is not used; clang does. So no more than a load can be relied on.
 */
static bool changes_nothing(enum rmw op, uint64_t operand, unsigned size)
{
	switch (op) {
	case RMW_ADD:
	case RMW_SUB:
	case RMW_OR:
	case RMW_XOR:
		return computed(RMW_OR, 0, operand, size) == 0;
	case RMW_AND:
		return computed(RMW_NAND, operand, operand, size) == 0;
	default:
		return false;
	}
}

/* Write value after the store older, which the thread has read for it. */
static void update(unsigned self, int location, struct location *l, uint32_t older, uint64_t value,
		   int order)
{
	uint32_t i;

	see(self, location, &messages[older], order);
	messages[older].updated = true;
	i = add_store(self, location, l, older, value);
	carry(self, &messages[i], order, messages[older].view);
	messages[i].id = schedule_did('u', messages[older].id);
}

static bool is_updated(const struct message *m, uint64_t with)
{
	(void)with;
	return m->updated;
}

uint64_t memory_rmw(void *address, unsigned size, enum rmw op, uint64_t operand, int order,
		    const void *pc)
{
	const unsigned self = schedule_self();
	int location;
	struct location *l;
	uint64_t before, after;
	uint32_t older;

	if (changes_nothing(op, operand, size))
		return memory_load(address, size, __ATOMIC_RELAXED, pc);
	if (!schedule_running() || (location = learn((uintptr_t)address, true)) < 0) {
		before = read_memory(address, size);
		write_memory(address, size, computed(op, before, operand, size));
		return before;
	}
	schedule_point(pc);
	mark_access(address, size, true, pc);
	l = history_of(location, address, size);
	order_totally(self, order);
	older = choose_store(self, location, l, is_updated, 0);
	before = messages[older].value;
	after = computed(op, before, operand, size);
	update(self, location, l, older, after, order);
	order_totally(self, order);
	trace_add(&(struct step){.thread = self,
				 .what = op == RMW_EXCHANGE ? "exchange" : "fetch",
				 .address = address,
				 .before = before,
				 .after = after,
				 .note = order_name(order, false),
				 .pc = pc,
				 .writes = 1});
	write_newest(l, address);
	return before;
}

/* A store that has the expected value may be read if it can be updated; others make it fail. */
static bool is_updated_and_equal(const struct message *m, uint64_t with)
{
	return m->updated && m->value == with;
}

bool memory_cas(void *address, unsigned size, uint64_t *expected, uint64_t desired, int success,
		int failure, bool weak, const void *pc)
{
	const unsigned self = schedule_self();
	int location;
	struct location *l;
	uint64_t value;
	uint32_t i;
	bool done;

	if (!schedule_running() || (location = learn((uintptr_t)address, true)) < 0) {
		value = read_memory(address, size);
		if (value != *expected) {
			*expected = value;
			return false;
		}
		write_memory(address, size, desired);
		return true;
	}
	schedule_point(pc);
	mark_access(address, size, true, pc);
	l = history_of(location, address, size);
	order_totally(self, success);
	i = choose_store(self, location, l, is_updated_and_equal, *expected);
	value = messages[i].value;
	done = value == *expected;
	/* A weak one may fail though it need not: one more choice, within the same bound. */
	if (done && weak && schedule_may_be_stale() && schedule_choose(2) == 1) {
		schedule_was_stale();
		done = false;
	}
	if (done) {
		update(self, location, l, i, desired, success);
	} else {
		see(self, location, &messages[i], failure);
		schedule_did('f', messages[i].id);
		schedule_read(pc, messages[i].id);
	}
	order_totally(self, success);
	trace_add(&(struct step){
		.thread = self,
		.what = done ? "CAS" : "CAS fails",
		.address = address,
		.before = value,
		.after = desired,
		.note = order_name(done ? success : failure, !done && i != l->newest),
		.pc = pc,
		.writes = done});
	if (done)
		write_newest(l, address);
	*expected = value;
	return done;
}

void memory_fence(int order, const void *pc)
{
	const unsigned self = schedule_self();

	if (!schedule_running())
		return;
	if (order == __ATOMIC_SEQ_CST)
		schedule_point(pc);
	if (acquires(order))
		view_join(&seen[self], &offered[self]);
	order_totally(self, order);
	if (releases(order)) {
		view_copy(&fenced[self], &seen[self]);
		has_fenced[self] = true;
		seen[self].clock[self]++;
	}
	schedule_did('F', (uint64_t)order);
	trace_add(&(struct step){
		.thread = self, .what = "fence", .note = order_name(order, false), .pc = pc});
}

uint64_t memory_newest(void *address, unsigned size, const void *pc)
{
	const unsigned self = schedule_self();
	const int location = learn((uintptr_t)address, false);
	struct location *l;

	if (location < 0)
		return read_memory(address, size);
	schedule_point(pc);
	l = history_of(location, address, size);
	see(self, location, &messages[l->newest], __ATOMIC_ACQUIRE);
	schedule_did('n', messages[l->newest].id);
	return messages[l->newest].value;
}

size_t memory_shared_print(char *text, size_t size)
{
	size_t used = 0;

	for (unsigned i = 0; i < shared_count && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%" PRIxPTR, i > 0 ? "," : "",
					 shared[i]);
	return used;
}

bool memory_shared_parse(const char *text)
{
	char *end;

	memory_forget();
	while (*text != '\0') {
		const uintptr_t address = strtoul(text, &end, 16);

		if (end == text || address == 0)
			return false;
		share(place_of(address));
		text = *end == ',' ? end + 1 : end;
	}
	return true;
}
