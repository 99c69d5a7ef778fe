/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fibers, choices and states. schedule.h says how they explore.
 */

#include "tests/interleave/schedule.h"

#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "tests/interleave/memory.h"
#include "tests/interleave/states.h"
#include "tests/interleave/system.h"
#include "tests/interleave/trace.h"

#define STACK    (64 * 1024)
#define TLS      512
#define CHOICES  4096
#define STEPS    20000 /* more than any run needs that comes to an end */
#define SPINNING 4     /* times that a load returns the same store before its thread yields */
#define LOADS    8
#define NONE     UINT32_MAX

enum fiber_state { ABSENT, READY, SLEEPING, AWAITING, ENDED, DEAD };

struct fiber {
	enum fiber_state state;
	bool started;
	bool yielded;
	bool timed_out;
	unsigned cpu;
	unsigned priority;
	uint64_t history; /* digest of its steps */
	const void *key;  /* what it sleeps on, until the deadline */
	uint64_t deadline;
	bool (*ready)(void); /* what it waits for */
	unsigned awaited;    /* or the thread whose end it waits for */
	void (*thread)(void);
	void *(*run)(void *); /* or that, of one that was created */
	void *arg;
	struct {
		const void *pc;
		uint64_t store;
		unsigned times;
	} loads[LOADS]; /* since it last wrote */
	unsigned loaded;
	jmp_buf at;
	ucontext_t first;
	char tls[TLS];
};

static struct fiber fibers[FIBERS];
static char stacks[FIBERS][STACK] __attribute__((aligned(64)));
static unsigned current, created, setup_cpu;
static bool running;

static const struct scene *scene;
static struct bounds left;
static unsigned steps;
static uint64_t now;

static jmp_buf runner;
static char failure[512];

/* The list of choices: what was chosen of how many. */
static uint8_t chosen[CHOICES], counts[CHOICES];
static unsigned length, place;
static bool replaying;

static struct {
	bool on;
	uint64_t state;
	unsigned changes[16], count;
	unsigned lowest;
} chance;

/* The program's own thread-local variables, which each fiber has of its own. */
static char *tls;
static size_t tls_size;
static char tls_initial[TLS];

static int find_tls(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_tls_data != NULL) {
			tls = info->dlpi_tls_data;
			tls_size = info->dlpi_phdr[i].p_memsz;
		}
	return 1; /* the first object is the program */
}

static void tls_prepare(void)
{
	if (tls != NULL)
		return;
	dl_iterate_phdr(find_tls, NULL);
	if (tls_size > TLS) {
		fprintf(stderr, "%zu bytes of thread-local variables: raise TLS\n", tls_size);
		exit(2);
	}
	if (tls_size > 0)
		memcpy(tls_initial, tls, tls_size);
}

/* xorshift64* */
static uint64_t draw(void)
{
	chance.state ^= chance.state >> 12;
	chance.state ^= chance.state << 25;
	chance.state ^= chance.state >> 27;
	return chance.state * UINT64_C(0x2545f4914f6cdd1d);
}

_Noreturn static void leave_run(enum outcome outcome)
{
	_longjmp(runner, (int)outcome + 1);
}

void explore_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(failure, sizeof(failure), format, args);
	va_end(args);
	leave_run(RUN_FAILED);
}

void schedule_learned(void)
{
	leave_run(RUN_LEARNED);
}

/* One of count choices; random says how one is drawn that is not in the list. */
static unsigned choose(unsigned count, unsigned drawn)
{
	if (count < 2)
		return 0;
	if (place == length) {
		if (length == CHOICES)
			explore_fail("a run has more than %u choices", CHOICES);
		chosen[length] = (uint8_t)(chance.on ? drawn : 0);
		counts[length++] = (uint8_t)count;
	}
	if (counts[place] != count)
		explore_fail("a run went another way than before: %u choices, then %u",
			     counts[place], count);
	return chosen[place++];
}

unsigned schedule_choose(unsigned count)
{
	return choose(count, chance.on && draw() % 4 == 0 ? (unsigned)(draw() % count) : 0);
}

bool schedule_may_be_stale(void)
{
	return left.stale > 0;
}

void schedule_was_stale(void)
{
	left.stale--;
}

/*
 * A state that was followed before need not be followed again. While a list is replayed, its
 * states are known of course.
 */
static void look_for_state(void)
{
	uint64_t digest = current + 1;

	if (place != length || replaying || chance.on)
		return;
	for (unsigned i = 0; i < created; i++) {
		digest = digest_mix(digest, fibers[i].history);
		digest = digest_mix(digest, (uint64_t)fibers[i].state << 8 | fibers[i].yielded);
	}
	digest = digest_mix(digest, (uint64_t)left.preemptions << 24 | left.stale << 16 |
					    left.timeouts << 8 | left.deaths);
	if (!states_add(digest_mix(digest, now)))
		leave_run(RUN_KNOWN);
}

static bool is_mortal(unsigned thread)
{
	return thread < SCENE_THREADS && (scene->mortal >> thread & 1) != 0;
}

bool schedule_is_mortal(void)
{
	return is_mortal(current);
}

static bool is_ready(const struct fiber *fiber)
{
	if (fiber->state != AWAITING)
		return fiber->state == READY;
	return fiber->ready != NULL ? fiber->ready() : schedule_ended(fiber->awaited);
}

static void fiber_entry(void);

static void switch_to(unsigned next)
{
	struct fiber *from = &fibers[current], *to = &fibers[next];

	if (to->state == AWAITING)
		to->state = READY;
	if (next == current && to->started)
		return;
	if (tls_size > 0 && from->started) {
		memcpy(from->tls, tls, tls_size);
		memcpy(tls, to->tls, tls_size);
	}
	current = next;
	if (!from->started || _setjmp(from->at) == 0) {
		if (to->started)
			_longjmp(to->at, 1);
		to->started = true;
		if (tls_size > 0)
			memcpy(tls, to->tls, tls_size);
		setcontext(&to->first);
	}
}

/* What may happen next: a thread goes on, wakes up because its time is over, or dies. */
struct option {
	unsigned thread;
	enum { GOES_ON, TIMES_OUT, DIES } what;
	bool preempts;
};

static void add_option(struct option *options, unsigned *count, struct option option)
{
	options[(*count)++] = option;
}

static void add_ready(struct option *options, unsigned *count, bool preempts, bool with_yielded)
{
	for (unsigned i = 0; i < created; i++)
		if ((i != current || !preempts) && is_ready(&fibers[i]) &&
		    (with_yielded || !fibers[i].yielded))
			add_option(options, count,
				   (struct option){.thread = i, .preempts = preempts});
}

static void add_sleepers(struct option *options, unsigned *count, bool preempts)
{
	for (unsigned i = 0; i < created; i++)
		if (fibers[i].state == SLEEPING && fibers[i].deadline != UINT64_MAX)
			add_option(options, count,
				   (struct option){
					   .thread = i, .what = TIMES_OUT, .preempts = preempts});
}

static unsigned list_options(struct option *options, bool goes_on)
{
	const bool stays = goes_on && !fibers[current].yielded;
	unsigned count = 0;

	if (stays) {
		add_option(options, &count, (struct option){.thread = current});
		if (left.preemptions > 0)
			add_ready(options, &count, true, false);
	} else {
		add_ready(options, &count, false, false);
		if (count == 0)
			add_ready(options, &count, false, true);
	}
	if (count == 0 || (left.timeouts > 0 && (!stays || left.preemptions > 0)))
		add_sleepers(options, &count, stays);
	if (goes_on && left.deaths > 0 && is_mortal(current))
		add_option(options, &count, (struct option){.thread = current, .what = DIES});
	return count;
}

/* PCT (Burckhardt, Kothari, Musuvathi and Nagarakatte, ASPLOS 2010): the highest priority runs. */
static unsigned by_priority(const struct option *options, unsigned count)
{
	unsigned best = 0;

	for (unsigned i = 0; i < chance.count; i++)
		if (chance.changes[i] == steps)
			fibers[current].priority = chance.lowest--;
	for (unsigned i = 1; i < count; i++) {
		if (options[i].what == DIES || options[i].what == TIMES_OUT) {
			if (draw() % 64 == 0)
				return i;
		} else if (fibers[options[i].thread].priority >
			   fibers[options[best].thread].priority)
			best = i;
	}
	return best;
}

static const char *where(unsigned thread)
{
	static char text[32];

	snprintf(text, sizeof(text), "thread %u", thread);
	return text;
}

/* No thread can go on: the run is over, or it hangs. */
static void end_run(void)
{
	for (unsigned i = 0; i < created; i++)
		if (fibers[i].state == SLEEPING || fibers[i].state == AWAITING)
			explore_fail("%s waits for ever", where(i));
	leave_run(RUN_ENDED);
}

static void die(const void *pc)
{
	fibers[current].state = DEAD;
	fibers[current].history = digest_mix(fibers[current].history, 0xdead);
	left.deaths--;
	system_died(current);
	trace_add(&(struct step){.thread = current, .what = "dies", .pc = pc});
}

/* Take the next step of some thread; goes_on: the present one could. */
static void reschedule(bool goes_on, const void *pc)
{
	struct option options[FIBERS * 3], *next;
	unsigned count;

	for (;;) {
		count = list_options(options, goes_on);
		if (count == 0)
			end_run();
		if (count > 1 || !goes_on)
			look_for_state();
		next = &options[choose(count, chance.on ? by_priority(options, count) : 0)];
		if (next->what != DIES)
			break;
		die(pc);
		goes_on = false;
	}
	if (next->preempts && !chance.on)
		left.preemptions--;
	if (next->what == TIMES_OUT) {
		struct fiber *sleeper = &fibers[next->thread];

		if (left.timeouts > 0 && count > 1)
			left.timeouts--;
		if (now < sleeper->deadline)
			now = sleeper->deadline;
		sleeper->state = READY;
		sleeper->timed_out = true;
	}
	switch_to(next->thread);
}

bool schedule_running(void)
{
	return running;
}

unsigned schedule_self(void)
{
	return current;
}

unsigned schedule_threads(void)
{
	return created;
}

bool schedule_is_own(const volatile void *address)
{
	return (uintptr_t)address - (uintptr_t)stacks[current] < STACK ||
	       (uintptr_t)address - (uintptr_t)tls < tls_size;
}

/* A step of this thread lets those go on that yielded to it. */
static void end_yields(void)
{
	for (unsigned i = 0; i < created; i++)
		if (i != current)
			fibers[i].yielded = false;
}

void schedule_point(const void *pc)
{
	if (++steps > STEPS)
		explore_fail("no end after %u steps", STEPS);
	reschedule(true, pc);
	fibers[current].yielded = false;
	end_yields();
}

/* The point before a store and the store itself are both part of the history: each is a state. */
void schedule_store(const void *pc)
{
	if (!running || !scene->torn || left.deaths == 0 || (scene->mortal >> current & 1) == 0)
		return;
	schedule_did('d', (uintptr_t)pc);
	look_for_state();
	if (choose(2, chance.on && draw() % 64 == 0) == 1) {
		die(pc);
		reschedule(false, pc);
	}
	schedule_did('D', (uintptr_t)pc);
}

uint64_t schedule_did(uint64_t what, uint64_t with)
{
	struct fiber *fiber = &fibers[current];

	return fiber->history = digest_mix(digest_mix(fiber->history, what), with);
}

void schedule_wrote(void)
{
	fibers[current].loaded = 0;
}

void schedule_read(const void *pc, uint64_t store)
{
	struct fiber *fiber = &fibers[current];
	unsigned i = 0;

	while (i < fiber->loaded && (fiber->loads[i].pc != pc || fiber->loads[i].store != store))
		i++;
	if (i == LOADS)
		return;
	if (i == fiber->loaded) {
		fiber->loads[i].pc = pc;
		fiber->loads[i].store = store;
		fiber->loads[i].times = 0;
		fiber->loaded++;
	}
	if (++fiber->loads[i].times >= SPINNING) {
		fiber->loads[i].times = 0;
		fiber->yielded = true;
	}
}

void schedule_yield(void)
{
	if (!running)
		return;
	fibers[current].yielded = true;
	schedule_point(__builtin_return_address(0));
}

bool schedule_sleep(const void *key, uint64_t deadline, const void *pc)
{
	struct fiber *fiber = &fibers[current];

	fiber->state = SLEEPING;
	fiber->key = key;
	fiber->deadline = deadline;
	fiber->timed_out = false;
	schedule_did('z', (uintptr_t)key);
	trace_add(&(struct step){.thread = current, .what = "sleeps", .pc = pc});
	reschedule(false, pc);
	schedule_wrote();
	schedule_did('w', fiber->timed_out);
	trace_add(&(struct step){
		.thread = current, .what = fiber->timed_out ? "times out" : "wakes up", .pc = pc});
	return !fiber->timed_out;
}

void schedule_wake(const void *key, bool all)
{
	for (unsigned i = 0; i < created; i++)
		if (fibers[i].state == SLEEPING && fibers[i].key == key) {
			fibers[i].state = READY;
			if (!all)
				return;
		}
}

static void end_fiber(void)
{
	fibers[current].state = ENDED;
	trace_add(&(struct step){.thread = current, .what = "ends"});
	schedule_did('e', 0);
	reschedule(false, NULL);
	abort();
}

static void fiber_entry(void)
{
	if (fibers[current].thread != NULL)
		fibers[current].thread();
	else
		fibers[current].run(fibers[current].arg);
	end_fiber();
}

static unsigned fiber_new(void)
{
	const unsigned i = created++;
	struct fiber *fiber = &fibers[i];

	if (i == FIBERS)
		explore_fail("more than %d threads", FIBERS);
	fiber->state = READY;
	fiber->started = fiber->yielded = fiber->timed_out = false;
	fiber->cpu = i;
	fiber->priority = 1000 + (chance.on ? (unsigned)(draw() % 1000) : 0);
	fiber->history = digest_mix(1, i);
	fiber->ready = NULL;
	fiber->thread = NULL;
	fiber->loaded = 0;
	memcpy(fiber->tls, tls_initial, tls_size);
	if (fiber->first.uc_stack.ss_sp == NULL) {
		getcontext(&fiber->first);
		fiber->first.uc_stack.ss_sp = stacks[i];
		fiber->first.uc_stack.ss_size = STACK;
	}
	makecontext(&fiber->first, fiber_entry, 0);
	return i;
}

unsigned schedule_spawn(void *(*run)(void *), void *arg)
{
	const unsigned i = fiber_new();

	fibers[i].run = run;
	fibers[i].arg = arg;
	memory_begin(i, (int)current);
	schedule_did('s', i);
	return i;
}

bool schedule_ended(unsigned thread)
{
	return thread < created && (fibers[thread].state == ENDED || fibers[thread].state == DEAD);
}

static void caught(int number)
{
	snprintf(failure, sizeof(failure), "signal %d: %s", number, strsignal(number));
	leave_run(RUN_FAILED);
}

static void catch_signals(void)
{
	static char stack[STACK];
	static bool done;
	const stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
	const struct sigaction action = {.sa_handler = caught, .sa_flags = SA_ONSTACK | SA_NODEFER};
	const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};

	if (done)
		return;
	done = true;
	sigaltstack(&other, NULL);
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

static void begin_run(const struct bounds *bounds)
{
	created = current = steps = place = setup_cpu = 0;
	now = 1;
	left = *bounds;
	failure[0] = '\0';
	if (chance.on)
		length = 0;
	chance.lowest = 500;
	trace_reset();
	memory_reset();
	system_reset();
}

enum outcome schedule_run(const struct scene *what, const struct bounds *bounds)
{
	int outcome;

	scene = what;
	tls_prepare();
	catch_signals();
	begin_run(bounds);
	outcome = _setjmp(runner);
	if (outcome == 0) {
		if (tls_size > 0)
			memcpy(tls, tls_initial, tls_size);
		scene->setup();
		for (unsigned i = 0; i < SCENE_THREADS && scene->threads[i] != NULL; i++) {
			fibers[fiber_new()].thread = scene->threads[i];
			memory_begin(i, -1);
		}
		running = true;
		current = 0;
		fibers[0].started = false;
		reschedule(false, NULL);
	}
	running = false;
	if (outcome - 1 == RUN_ENDED && scene->check != NULL) {
		outcome = _setjmp(runner);
		if (outcome == 0)
			scene->check();
		return outcome == 0 ? RUN_ENDED : (enum outcome)(outcome - 1);
	}
	return (enum outcome)(outcome - 1);
}

bool schedule_next(void)
{
	while (length > 0 && chosen[length - 1] + 1 >= counts[length - 1])
		length--;
	if (length == 0)
		return false;
	chosen[length - 1]++;
	return true;
}

void schedule_reset(void)
{
	length = place = 0;
	replaying = false;
	states_reset();
}

void schedule_random(uint64_t seed, unsigned changes, unsigned most)
{
	chance.on = true;
	chance.state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
	chance.count = changes;
	for (unsigned i = 0; i < changes; i++)
		chance.changes[i] = (unsigned)(draw() % (most > 0 ? most : 1)) + 1;
}

size_t schedule_print(char *text, size_t size)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	size_t used = 0;

	for (unsigned i = 0; i < length && used + 3 < size; i++) {
		text[used++] = digits[chosen[i]];
		text[used++] = digits[counts[i]];
	}
	text[used] = '\0';
	return used;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'z' ? c - 'a' + 10 : -1;
}

bool schedule_parse(const char *text)
{
	schedule_reset();
	replaying = true;
	for (; text[0] != '\0'; text += 2) {
		const int choice = digit(text[0]), of = digit(text[1]);

		if (length == CHOICES || choice < 0 || of <= choice)
			return false;
		chosen[length] = (uint8_t)choice;
		counts[length++] = (uint8_t)of;
	}
	return true;
}

uint64_t schedule_states(void)
{
	return states_count();
}

unsigned schedule_steps(void)
{
	return steps;
}

const char *schedule_failure(void)
{
	return failure;
}

/* What scenes call. */

static uint64_t ghost_step(const struct ghost *ghost, long before, long after)
{
	return schedule_did((uint64_t)before << 32 ^ (uint64_t)after, (uintptr_t)ghost);
}

long ghost_add(struct ghost *ghost, long n)
{
	const long before = ghost->value;

	ghost->value += n;
	if (running)
		ghost_step(ghost, before, ghost->value);
	return ghost->value;
}

long ghost_get(const struct ghost *ghost)
{
	if (running)
		ghost_step(ghost, ghost->value, ghost->value);
	return ghost->value;
}

void explore_step(void)
{
	schedule_point(__builtin_return_address(0));
	schedule_did('.', 0);
}

unsigned explore_self(void)
{
	return current;
}

bool explore_died(unsigned thread)
{
	return thread < created && fibers[thread].state == DEAD;
}

bool explore_finds_dead(unsigned thread)
{
	if (!running)
		return explore_died(thread);
	schedule_point(__builtin_return_address(0));
	if (!explore_died(thread)) {
		schedule_did('k', 0);
		return false;
	}
	memory_join(current, thread);
	schedule_did('k', fibers[thread].history);
	return true;
}

static void await(bool (*ready)(void), unsigned thread)
{
	struct fiber *fiber = &fibers[current];

	fiber->ready = ready;
	fiber->awaited = thread;
	fiber->state = AWAITING;
	schedule_did('a', thread);
	reschedule(false, __builtin_return_address(0));
	schedule_wrote();
}

void explore_await(bool (*ready)(void))
{
	await(ready, 0);
}

void explore_await_end(unsigned thread)
{
	await(NULL, thread);
	memory_join(current, thread);
	schedule_did('j', fibers[thread].history);
}

void explore_cpu(unsigned cpu)
{
	if (running)
		fibers[current].cpu = cpu;
	else
		setup_cpu = cpu;
}

unsigned schedule_cpu(void)
{
	return running ? fibers[current].cpu : setup_cpu;
}

uint64_t explore_now(void)
{
	if (running)
		schedule_did('t', now);
	return now;
}

uint64_t explore_newest(const _Atomic uint64_t *word)
{
	return *word; /* no step, as this file is compiled without instrumentation */
}

void explore_pass(uint64_t ns)
{
	now += ns;
	if (running)
		schedule_did('p', now);
}

void explore_name(const volatile void *address, const char *text)
{
	trace_name(address, text);
}
