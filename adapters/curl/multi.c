/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A multi handle. A transfer without a permit is not in curl's handle: it waits in the limiter's
 * queue, and in a list here, sorted by deadline. The thread that releases a permit puts the
 * transfer on a stack, and wakes the loop if the loop may be asleep.
 *
 * word      written by                         order    pairs with
 * --------  ---------------------------------  -------  -----------------------------------------
 * granted   push, in any thread: CAS           release  take: the transfer's next is seen
 * granted   take: exchange, NULL               acquire  push
 * granted   sleep: CAS, NULL to asleep         release  push: the mark is not a transfer
 *
 * The bottom of the stack shows the state of the loop. NULL: it is in a function of this file,
 * which checks the stack again before it returns. A mark: it may be asleep. The thread that pushes
 * onto the mark wakes the loop. So a wakeup costs one system call, and a transfer that starts when
 * another one ends in the same loop costs none.
 */

#include "guard.h"

#include <errno.h>
#include <limits.h>
#include <search.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include <weir/partition.h>
#include <weir/wait.h>

/* The interval of checks whether another thread has opened an origin, which sends no wakeup. */
#define CLOSED_LOOK (10 * WEIR_MS)

/* The interval of polls that weir/wait.h requires with partitions. */
#define PARTITIONS_LOOK (100 * WEIR_MS)

enum state {
	WAITING, /* in the limiter's queue */
	RUNNING, /* in curl's handle */
	ENDED,   /* to be reported by weir_curl_multi_done() */
};

struct transfer {
	CURL *easy;
	struct weir_curl_multi *multi;
	enum state state;
	bool ready;  /* in multi->ready: its permit has arrived */
	bool parted; /* its limiter has partitions */
	bool seen;   /* in curl's handle */
	struct hold hold;
	struct weir_wait wait;
	weir_time deadline;
	struct transfer *next;      /* on the stack */
	TAILQ_ENTRY(transfer) link; /* in the list of its state */
	TAILQ_ENTRY(transfer) ready_link;
	int error;
	CURLcode result;
};

TAILQ_HEAD(transfers, transfer);

struct weir_curl_multi {
	struct weir_curl *guard;
	CURLM *curl;
	bool inside; /* curl runs, and with it the program's callbacks */
	void *tree;  /* all transfers, by easy handle */
	struct transfers waiting, running, ended, ready;
	unsigned waiting_count, running_count, parted_count;
	weir_time looked; /* the last poll for partitions */

	uint64_t lost;    /* transfers taken out by curl's own functions, and released */
	unsigned missing; /* taken out in this way, and not released yet */

	_Atomic(struct transfer *) granted;
	struct transfer asleep; /* its address is the mark */

	/* For weir_curl_multi_socket_action() only. */
	int fd; /* -1: there is none */
	void *fd_data;
	curl_socket_callback socket;
	void *socket_data;
	curl_multi_timer_callback timer;
	void *timer_data;
	weir_time curl_due; /* WEIR_FOREVER: never */
	weir_time due;      /* the time last passed to timer */
};

static int compare(const void *a, const void *b)
{
	const uintptr_t x = (uintptr_t)((const struct transfer *)a)->easy;
	const uintptr_t y = (uintptr_t)((const struct transfer *)b)->easy;

	return (x > y) - (x < y);
}

static struct transfer *find(const struct weir_curl_multi *m, CURL *easy)
{
	const struct transfer wanted = {.easy = easy};
	struct transfer *const *node = tfind(&wanted, &m->tree, compare);

	return node != NULL ? *node : NULL;
}

static struct transfers *list_of(struct weir_curl_multi *m, enum state state)
{
	switch (state) {
	case WAITING:
		return &m->waiting;
	case RUNNING:
		return &m->running;
	default:
		return &m->ended;
	}
}

/* In the order of deadlines. Usually the new one is the last, since all wait equally long. */
static void insert_waiting(struct weir_curl_multi *m, struct transfer *t)
{
	struct transfer *before = TAILQ_LAST(&m->waiting, transfers);

	while (before != NULL && before->deadline > t->deadline)
		before = TAILQ_PREV(before, transfers, link);
	if (before != NULL)
		TAILQ_INSERT_AFTER(&m->waiting, before, t, link);
	else
		TAILQ_INSERT_HEAD(&m->waiting, t, link);
}

static void count(struct weir_curl_multi *m, const struct transfer *t, unsigned by)
{
	if (t->state == RUNNING)
		m->running_count += by;
	if (t->state != WAITING)
		return;
	m->waiting_count += by;
	if (t->parted)
		m->parted_count += by;
}

static void insert(struct weir_curl_multi *m, struct transfer *t, enum state state)
{
	t->state = state;
	count(m, t, 1);
	if (state == WAITING)
		insert_waiting(m, t);
	else
		TAILQ_INSERT_TAIL(list_of(m, state), t, link);
}

static void take_out(struct weir_curl_multi *m, struct transfer *t)
{
	count(m, t, -1u);
	TAILQ_REMOVE(list_of(m, t->state), t, link);
	if (t->ready)
		TAILQ_REMOVE(&m->ready, t, ready_link);
	t->ready = false;
}

static void move(struct weir_curl_multi *m, struct transfer *t, enum state state)
{
	take_out(m, t);
	insert(m, t, state);
}

static void end(struct weir_curl_multi *m, struct transfer *t, int error, CURLcode result)
{
	t->error = error;
	t->result = result;
	move(m, t, ENDED);
}

static void forget(struct weir_curl_multi *m, struct transfer *t)
{
	take_out(m, t);
	tdelete(t, &m->tree, compare);
	free(t);
}

static void wake(const struct weir_curl_multi *m)
{
	const uint64_t one = 1;

	if (m->fd < 0)
		curl_multi_wakeup(m->curl);
	else if (write(m->fd, &one, sizeof(one)) < 0)
		return; /* the counter is full, so the eventfd is readable */
}

/* weir_granted_fn: runs in the thread that releases the permit. */
static void granted(void *arg)
{
	struct transfer *t = arg;
	struct weir_curl_multi *m = t->multi;
	struct transfer *top = atomic_load_explicit(&m->granted, memory_order_relaxed);

	do {
		t->next = top != &m->asleep ? top : NULL;
	} while (!atomic_compare_exchange_weak_explicit(&m->granted, &top, t, memory_order_release,
							memory_order_relaxed));
	if (top == &m->asleep)
		wake(m);
}

/* Move the stack to the list of ready transfers, and mark the loop as awake. */
static void take_granted(struct weir_curl_multi *m)
{
	struct transfer *t = atomic_exchange_explicit(&m->granted, NULL, memory_order_acquire);
	struct transfer *newer = NULL;

	for (; t != NULL && t != &m->asleep; t = t->next) {
		t->ready = true;
		if (newer != NULL)
			TAILQ_INSERT_BEFORE(newer, t, ready_link);
		else
			TAILQ_INSERT_TAIL(&m->ready, t, ready_link);
		newer = t;
	}
}

/* False: a transfer got a permit meanwhile. */
static bool fall_asleep(struct weir_curl_multi *m)
{
	struct transfer *none = NULL;

	return atomic_compare_exchange_strong_explicit(&m->granted, &none, &m->asleep,
						       memory_order_release, memory_order_relaxed);
}

static int error_of(CURLMcode code)
{
	switch (code) {
	case CURLM_OK:
		return 0;
	case CURLM_OUT_OF_MEMORY:
		return -ENOMEM;
	case CURLM_ADDED_ALREADY:
		return -EEXIST;
	case CURLM_RECURSIVE_API_CALL:
		return -EDEADLK;
	default:
		return -EINVAL;
	}
}

/* Start a transfer that has its permit. */
static int start(struct weir_curl_multi *m, struct transfer *t)
{
	const int error = error_of(curl_multi_add_handle(m->curl, t->easy));

	if (error == 0)
		move(m, t, RUNNING);
	else
		hold_drop(m->guard, &t->hold, WEIR_IGNORE);
	return error;
}

/* Start a waiting transfer if its permit has arrived and its origin is open. */
static void try_start(struct weir_curl_multi *m, struct transfer *t)
{
	int error;

	if (closed_until(m->guard, t->hold.limiter) != 0 ||
	    weir_poll(t->hold.limiter, &t->wait, &t->hold.token) != 0)
		return;
	if (!t->ready)
		take_granted(m); /* it has been granted meanwhile */
	error = start(m, t);
	if (error != 0)
		end(m, t, error, CURLE_OK);
}

/* Leave the queue, and the stack; release the permit if it has arrived. */
static void stop_waiting(struct weir_curl_multi *m, struct transfer *t, enum weir_outcome outcome)
{
	const int came = weir_cancel(t->hold.limiter, &t->wait, &t->hold.token);

	(void)came; /* the token shows it too */
	take_granted(m);
	hold_drop(m->guard, &t->hold, outcome);
}

static void start_ready(struct weir_curl_multi *m)
{
	struct transfer *t, *next;

	for (t = TAILQ_FIRST(&m->ready); t != NULL; t = next) {
		next = TAILQ_NEXT(t, ready_link);
		try_start(m, t);
	}
}

static void expire(struct weir_curl_multi *m, weir_time now)
{
	struct transfer *t;

	while ((t = TAILQ_FIRST(&m->waiting)) != NULL && t->deadline <= now) {
		stop_waiting(m, t, WEIR_IGNORE);
		end(m, t, -ETIMEDOUT, CURLE_OK);
	}
}

/* Capacity reserved for a partition becomes free by time alone; only a poll notices that. */
static void poll_partitions(struct weir_curl_multi *m, weir_time now)
{
	struct transfer *t, *next;

	if (m->parted_count == 0 || now - m->looked < PARTITIONS_LOOK)
		return;
	m->looked = now;
	for (t = TAILQ_FIRST(&m->waiting); t != NULL; t = next) {
		next = TAILQ_NEXT(t, link);
		if (t->parted && !t->ready)
			try_start(m, t);
	}
}

static void admit(struct weir_curl_multi *m)
{
	const weir_time now = weir_now();

	take_granted(m);
	start_ready(m);
	expire(m, now);
	poll_partitions(m, now);
	start_ready(m); /* transfers that got a permit by the two calls above */
}

/* A transfer that curl has finished. One that was added by curl's own functions is reported too. */
static struct transfer *finished(struct weir_curl_multi *m, CURL *easy)
{
	struct transfer *t = find(m, easy);

	if (t != NULL)
		return t;
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return NULL;
	t->easy = easy;
	if (tsearch(t, &m->tree, compare) == NULL) {
		free(t);
		return NULL;
	}
	insert(m, t, RUNNING);
	return t;
}

/* Transfers that outcome() adds would look lost to look_for_lost(). */
static void collect(struct weir_curl_multi *m)
{
	struct transfer *t;
	CURLcode result;
	CURLMsg *message;
	int left;

	m->inside = true;
	while ((message = curl_multi_info_read(m->curl, &left)) != NULL) {
		result = message->data.result;
		t = finished(m, message->easy_handle);
		if (t == NULL)
			continue;
		curl_multi_remove_handle(m->curl, t->easy);
		if (t->hold.limiter != NULL)
			hold_finish(m->guard, &t->hold, t->easy, result);
		end(m, t, 0, result);
	}
	m->inside = false;
}

/* Release a transfer that was removed or cleaned up by curl's own functions. */
static void give_up(struct weir_curl_multi *m, struct transfer *t)
{
	m->lost++;
	hold_drop(m->guard, &t->hold, WEIR_CANCELLED);
	forget(m, t);
}

static void give_up_all(struct weir_curl_multi *m)
{
	struct transfer *t;

	while ((t = TAILQ_FIRST(&m->running)) != NULL)
		give_up(m, t);
	m->missing = 0;
}

#if LIBCURL_VERSION_NUM >= 0x080400
/* Out of memory, the transfers are released at a later call. */
static void give_up_lost(struct weir_curl_multi *m)
{
	CURL **there = curl_multi_get_handles(m->curl);
	struct transfer *t, *next;

	if (there == NULL)
		return;
	for (size_t i = 0; there[i] != NULL; i++) {
		t = find(m, there[i]);
		if (t != NULL && t->state == RUNNING)
			t->seen = true;
	}
	curl_free(there);
	for (t = TAILQ_FIRST(&m->running); t != NULL; t = next) {
		next = TAILQ_NEXT(t, link);
		if (!t->seen)
			give_up(m, t);
		else
			t->seen = false;
	}
	m->missing = 0;
}
#else
/* Only their number is known, not which they are: a handle that was cleaned up must not be used. */
static void give_up_lost(struct weir_curl_multi *m)
{
	(void)m;
}
#endif

/* Curl has run, and its messages are read: all running transfers should be in its handle. */
static void look_for_lost(struct weir_curl_multi *m, unsigned curl_running)
{
	m->missing = m->running_count > curl_running ? m->running_count - curl_running : 0;
	if (curl_running == 0)
		give_up_all(m);
	else if (m->missing > 0)
		give_up_lost(m);
}

/* After curl has run: collect and start transfers until no more can start. */
static void settle(struct weir_curl_multi *m, int curl_running)
{
	collect(m);
	if (curl_running >= 0)
		look_for_lost(m, (unsigned)curl_running);
	do {
		collect(m);
		admit(m);
	} while (!fall_asleep(m));
}

static int running_now(const struct weir_curl_multi *m)
{
	const unsigned all = m->waiting_count + m->running_count;

	return all < INT_MAX ? (int)all : INT_MAX;
}

static weir_time sooner(weir_time a, weir_time b)
{
	return a < b ? a : b;
}

/* The next time to check without a wakeup; WEIR_FOREVER: never. */
static weir_time due(const struct weir_curl_multi *m)
{
	const struct transfer *first = TAILQ_FIRST(&m->waiting);
	weir_time when;

	if (first == NULL)
		return WEIR_FOREVER;
	when = first->deadline;
	if (!TAILQ_EMPTY(&m->ready))
		when = sooner(when, weir_now() + CLOSED_LOOK);
	if (m->parted_count > 0)
		when = sooner(when, m->looked + PARTITIONS_LOOK);
	return when;
}

/* Milliseconds from now, rounded up, so that the time has passed then; below 0: forever. */
static long until(weir_time when)
{
	const weir_time now = weir_now();
	weir_dur ms;

	if (when == WEIR_FOREVER)
		return -1;
	if (when <= now)
		return 0;
	ms = (when - now + WEIR_MS - 1) / WEIR_MS;
	return ms < INT_MAX ? (long)ms : INT_MAX;
}

/* Set the event loop's timer, if its time has changed. */
static int set_timer(struct weir_curl_multi *m)
{
	const weir_time when = sooner(due(m), m->curl_due);

	if (m->timer == NULL || when == m->due)
		return 0;
	m->due = when;
	return m->timer(m->curl, until(when), m->timer_data);
}

/* curl_multi_timer_callback. */
static int curl_sets_timer(CURLM *curl, long timeout_ms, void *arg)
{
	struct weir_curl_multi *m = arg;

	(void)curl;
	m->curl_due = timeout_ms < 0 ? WEIR_FOREVER : weir_now() + (weir_time)timeout_ms * WEIR_MS;
	return set_timer(m);
}

int weir_curl_multi_create(struct weir_curl *guard, struct weir_curl_multi **multi)
{
	struct weir_curl_multi *m = calloc(1, sizeof(*m));

	*multi = NULL;
	if (m == NULL)
		return -ENOMEM;
	m->guard = guard;
	m->fd = -1;
	m->curl_due = m->due = WEIR_FOREVER;
	TAILQ_INIT(&m->waiting);
	TAILQ_INIT(&m->running);
	TAILQ_INIT(&m->ended);
	TAILQ_INIT(&m->ready);
	atomic_init(&m->granted, &m->asleep);
	m->curl = curl_multi_init();
	if (m->curl == NULL) {
		free(m);
		return -ENOMEM;
	}
	atomic_fetch_add_explicit(&guard->users, 1, memory_order_relaxed);
	*multi = m;
	return 0;
}

static void close_fd(struct weir_curl_multi *m)
{
	if (m->fd < 0)
		return;
	m->socket(NULL, m->fd, CURL_POLL_REMOVE, m->socket_data, m->fd_data);
	close(m->fd);
}

/*
 * Waiting transfers are removed first, because the release of a permit may wake the handle. Running
 * ones are left to curl_multi_cleanup(), since some handles may have been cleaned up already.
 */
void weir_curl_multi_destroy(struct weir_curl_multi *m)
{
	struct transfer *t;

	if (m == NULL)
		return;
	m->timer = NULL;
	while ((t = TAILQ_FIRST(&m->waiting)) != NULL) {
		stop_waiting(m, t, WEIR_CANCELLED);
		forget(m, t);
	}
	curl_multi_cleanup(m->curl);
	give_up_all(m);
	while ((t = TAILQ_FIRST(&m->ended)) != NULL)
		forget(m, t);
	close_fd(m);
	atomic_fetch_sub_explicit(&m->guard->users, 1, memory_order_release);
	free(m);
}

CURLM *weir_curl_multi_handle(const struct weir_curl_multi *m)
{
	return m->curl;
}

/* Acquire a permit, enter the queue, or fail. */
static int acquire(struct weir_curl_multi *m, struct transfer *t, const struct weir_call *call)
{
	struct weir_limiter *limiter = t->hold.limiter;
	const bool bypass = (call->flags & WEIR_CALL_BYPASS) != 0;
	const bool closed = !bypass && closed_until(m->guard, limiter) != 0;
	const bool waits = !bypass && t->deadline > weir_now();
	int error;

	if (closed && (!waits || closed_for(m->guard, limiter, t->deadline)))
		return -EBUSY;
	if (closed)
		return weir_enqueue_for(limiter, call, granted, t, &t->wait);
	if (!waits)
		return weir_try_acquire_for(limiter, call, &t->hold.token);
	error = weir_acquire_or_enqueue(limiter, call, granted, t, &t->wait, &t->hold.token);
	return error == -EINPROGRESS ? 0 : error;
}

static int make_transfer(struct weir_curl_multi *m, CURL *easy, const struct weir_curl_call *call,
			 struct transfer **transfer)
{
	struct transfer *t = calloc(1, sizeof(*t));
	int error;

	*transfer = t;
	if (t == NULL)
		return -ENOMEM;
	t->easy = easy;
	t->multi = m;
	t->deadline = call->deadline;
	error = hold_find(m->guard, easy, call, &t->hold);
	if (error == 0 && tsearch(t, &m->tree, compare) == NULL) {
		hold_drop(m->guard, &t->hold, WEIR_IGNORE);
		error = -ENOMEM;
	}
	if (error != 0) {
		free(t);
		return error;
	}
	t->parted = weir_partition_count(t->hold.limiter) > 0;
	insert(m, t, WAITING);
	return 0;
}

/*
 * The handle is in the tree. If it is not in curl's handle, then the old one was cleaned up, and
 * this is a new one at the same address.
 */
static int replace(struct weir_curl_multi *m, struct transfer *t)
{
	if (t->state != RUNNING || curl_multi_add_handle(m->curl, t->easy) != CURLM_OK)
		return -EEXIST;
	curl_multi_remove_handle(m->curl, t->easy);
	if (m->missing > 0)
		m->missing--;
	give_up(m, t);
	return 0;
}

int weir_curl_multi_add(struct weir_curl_multi *m, CURL *easy, const struct weir_curl_call *call)
{
	static const struct weir_curl_call ordinary;
	struct transfer *t = find(m, easy);
	int error = 0;

	if (m->inside)
		return -EDEADLK;
	if (t != NULL)
		error = replace(m, t);
	if (call == NULL)
		call = &ordinary;
	if (error == 0)
		error = make_transfer(m, easy, call, &t);
	if (error != 0)
		return error;
	error = acquire(m, t, &call->call);
	if (error == 0 && t->hold.token.state != 0)
		error = start(m, t);
	if (error != 0) {
		hold_drop(m->guard, &t->hold, WEIR_IGNORE);
		forget(m, t);
	}
	set_timer(m);
	return error;
}

/* Transfers that became ready meanwhile are started when the loop runs again. */
static void leave(struct weir_curl_multi *m)
{
	while (!fall_asleep(m))
		take_granted(m);
	if (!TAILQ_EMPTY(&m->ready))
		wake(m);
}

int weir_curl_multi_remove(struct weir_curl_multi *m, CURL *easy)
{
	struct transfer *t = find(m, easy);

	if (m->inside)
		return -EDEADLK;
	if (t == NULL)
		return -ENOENT;
	take_granted(m);
	if (t->state == RUNNING)
		curl_multi_remove_handle(m->curl, easy);
	if (t->state == WAITING)
		stop_waiting(m, t, WEIR_CANCELLED);
	else
		hold_drop(m->guard, &t->hold, WEIR_CANCELLED);
	forget(m, t);
	leave(m);
	set_timer(m);
	return 0;
}

uint64_t weir_curl_multi_lost(const struct weir_curl_multi *m)
{
	return m->lost + m->missing;
}

bool weir_curl_multi_done(struct weir_curl_multi *m, struct weir_curl_done *done)
{
	struct transfer *t = TAILQ_FIRST(&m->ended);

	if (t == NULL)
		return false;
	*done = (struct weir_curl_done){.easy = t->easy, .error = t->error, .result = t->result};
	forget(m, t);
	return true;
}

CURLMcode weir_curl_multi_perform(struct weir_curl_multi *m, int *running)
{
	int curl_running = 0;
	CURLMcode code;

	if (m->inside)
		return CURLM_RECURSIVE_API_CALL;
	admit(m);
	m->inside = true;
	code = curl_multi_perform(m->curl, &curl_running);
	m->inside = false;
	settle(m, code == CURLM_OK ? curl_running : -1);
	*running = running_now(m);
	return code;
}

CURLMcode weir_curl_multi_poll(struct weir_curl_multi *m, struct curl_waitfd *extra, unsigned count,
			       int timeout_ms, int *ready)
{
	const long own = until(due(m));

	if (own >= 0 && own < timeout_ms)
		timeout_ms = (int)own;
	return curl_multi_poll(m->curl, extra, count, timeout_ms, ready);
}

int weir_curl_multi_sockets(struct weir_curl_multi *m, curl_socket_callback socket,
			    void *socket_data, curl_multi_timer_callback timer, void *timer_data)
{
	if (socket == NULL || timer == NULL || m->fd >= 0)
		return -EINVAL;
	m->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (m->fd < 0)
		return -errno;
	m->socket = socket;
	m->socket_data = socket_data;
	m->timer = timer;
	m->timer_data = timer_data;
	curl_multi_setopt(m->curl, CURLMOPT_SOCKETDATA, socket_data);
	curl_multi_setopt(m->curl, CURLMOPT_SOCKETFUNCTION, socket);
	curl_multi_setopt(m->curl, CURLMOPT_TIMERDATA, m);
	curl_multi_setopt(m->curl, CURLMOPT_TIMERFUNCTION, curl_sets_timer);
	socket(NULL, m->fd, CURL_POLL_IN, socket_data, m->fd_data);
	return 0;
}

/* Pass the event to curl, unless it is for the eventfd. *curl_running is below 0 if unknown. */
static CURLMcode act(struct weir_curl_multi *m, curl_socket_t socket, int events, int *curl_running)
{
	uint64_t wakes;
	CURLMcode code;

	*curl_running = -1;
	if (m->fd >= 0 && socket == m->fd)
		return read(m->fd, &wakes, sizeof(wakes)) < 0 && errno != EAGAIN
			       ? CURLM_INTERNAL_ERROR
			       : CURLM_OK;
	m->inside = true;
	code = curl_multi_socket_action(m->curl, socket, events, curl_running);
	m->inside = false;
	if (code != CURLM_OK)
		*curl_running = -1;
	return code;
}

CURLMcode weir_curl_multi_socket_action(struct weir_curl_multi *m, curl_socket_t socket, int events,
					int *running)
{
	int curl_running;
	CURLMcode code;

	if (m->inside)
		return CURLM_RECURSIVE_API_CALL;
	if (socket == CURL_SOCKET_TIMEOUT)
		m->due = m->curl_due = WEIR_FOREVER; /* it has expired: curl sets it again */
	admit(m);
	code = act(m, socket, events, &curl_running);
	settle(m, curl_running);
	*running = running_now(m);
	set_timer(m);
	return code;
}

CURLMcode weir_curl_multi_assign(struct weir_curl_multi *m, curl_socket_t socket, void *data)
{
	if (m->fd < 0 || socket != m->fd)
		return curl_multi_assign(m->curl, socket, data);
	m->fd_data = data;
	return CURLM_OK;
}
