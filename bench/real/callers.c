/* SPDX-License-Identifier: BSD-2-Clause */
#include "callers.h"

#include "bench/sim/alloc_or_abort.h"
#include "meter.h"
#include "plan.h"
#include "real.h"
#include "staff.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Time for all callers to start before the first call. */
#define SETTLING (200 * WEIR_MS)

/* In memory shared by all, followed by the callers' tallies, by caller and phase. */
struct shared {
	struct limit_meter meter;
	weir_time epoch;
	struct tally tallies[];
};

/* A request of a caller, and its answer. call belongs to the caller; the service only copies it. */
struct request {
	void *call;
	double work[STATIONS_MAX];
};

struct answer {
	void *call;
	weir_dur waited;
};

struct host {
	const struct run_setup *setup;
	const struct scenario *scenario;
	struct plan plan;
	unsigned count;
	bool processes;
	struct shared *shared;
	size_t shared_size;

	struct weir_config config;
	struct weir_observer observer;
	void *block; /* of a shared limiter; NULL: private */
	size_t block_size;
	struct weir_limiter *limiter;

	int ends[CALLERS_MAX][2]; /* of the service, and of the caller */
	pid_t children[CALLERS_MAX];
	pthread_t threads[CALLERS_MAX];
	struct staff servers[STATIONS_MAX];
	struct run_result *result;
};

/* A call of a caller. */
struct call {
	weir_time began;
	struct weir_token token;
	bool given_up;
	struct call *next; /* the call that arrived after it */
};

struct caller {
	const struct host *host;
	unsigned number;
	int end;
	struct weir_limiter *limiter;
	struct tally *tallies; /* by phase */
	struct call *oldest, **newest;
	size_t next; /* index of the next planned call */
	unsigned at_service;
	bool broken;
};

static struct tally *tally_now(const struct caller *c, weir_time now)
{
	const weir_time epoch = c->host->shared->epoch;

	return &c->tallies[plan_phase_at(&c->host->plan, now > epoch ? now - epoch : 0)];
}

static void send_request(struct caller *c, struct call *call, const struct planned_call *planned)
{
	struct request request = {.call = call};

	memcpy(request.work, planned->work, sizeof(request.work));
	if (send(c->end, &request, sizeof(request), MSG_NOSIGNAL) != (ssize_t)sizeof(request))
		c->broken = true;
	c->at_service++;
}

static void bring_one(struct caller *c, weir_time now)
{
	const struct planned_call *planned = &c->host->plan.calls[c->next];
	struct tally *tally = tally_now(c, c->host->shared->epoch + planned->at);
	struct weir_token token;
	struct call *call;

	c->next += c->host->count;
	tally->offered++;
	if (weir_try_acquire_at(c->limiter, now, &token) != 0) {
		tally->rejected++;
		return;
	}
	tally_admitted(tally, token.inflight);
	call = alloc_or_abort(sizeof(*call));
	*call = (struct call){.began = now, .token = token};
	*c->newest = call;
	c->newest = &call->next;
	send_request(c, call, planned);
}

/* The caller gives up: it returns the permit, and the service goes on with the call. */
static void give_up(struct caller *c, weir_time now)
{
	const weir_dur timeout = c->host->scenario->client.timeout;

	for (struct call *call = c->oldest; timeout > 0 && call != NULL; call = call->next) {
		if (now - call->began < timeout)
			return;
		if (call->given_up)
			continue;
		call->given_up = true;
		weir_release(c->limiter, &call->token, WEIR_TIMED_OUT);
		tally_timed_out(tally_now(c, now), now - call->began);
	}
}

static void drop(struct caller *c, struct call *call)
{
	struct call **at = &c->oldest;

	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
	if (c->newest == &call->next)
		c->newest = at;
	free(call);
}

static void take_answer(struct caller *c, const struct answer *answer)
{
	const weir_dur deadline = c->host->scenario->client.deadline;
	struct call *call = answer->call;
	const weir_time now = weir_now();
	const weir_dur latency = now - call->began;

	c->at_service--;
	if (!call->given_up) {
		weir_queued(c->limiter, &call->token, answer->waited);
		weir_release_at(c->limiter, now, &call->token, WEIR_SUCCESS);
		tally_served(tally_now(c, now), latency, deadline == 0 || latency <= deadline);
	}
	drop(c, call);
}

static void take_answers(struct caller *c)
{
	struct answer answer;
	ssize_t size;

	while ((size = recv(c->end, &answer, sizeof(answer), MSG_DONTWAIT)) ==
	       (ssize_t)sizeof(answer))
		take_answer(c, &answer);
	c->broken |= size == 0;
}

/* The next time at which there is something to do other than answers. */
static weir_time next_time(const struct caller *c)
{
	const struct plan *plan = &c->host->plan;
	const weir_dur timeout = c->host->scenario->client.timeout;
	weir_time next = WEIR_FOREVER;

	if (c->next < plan->call_count)
		next = c->host->shared->epoch + plan->calls[c->next].at;
	for (const struct call *call = c->oldest; timeout > 0 && call != NULL; call = call->next) {
		if (call->given_up)
			continue;
		return call->began + timeout < next ? call->began + timeout : next;
	}
	return next;
}

static void wait_until(int fd, weir_time at)
{
	struct pollfd input = {.fd = fd, .events = POLLIN};
	const weir_time now = weir_now();
	const weir_dur left = at > now ? at - now : 0;
	const struct timespec timeout = {
		.tv_sec = (time_t)(left / WEIR_S),
		.tv_nsec = (long)(left % WEIR_S),
	};

	ppoll(&input, 1, at != WEIR_FOREVER ? &timeout : NULL, NULL);
}

static void call_all(struct caller *c)
{
	const struct plan *plan = &c->host->plan;
	const weir_time epoch = c->host->shared->epoch;

	c->newest = &c->oldest;
	prctl(PR_SET_TIMERSLACK, 1UL);
	while ((c->next < plan->call_count || c->at_service > 0) && !c->broken) {
		weir_time now;

		wait_until(c->end, next_time(c));
		take_answers(c);
		now = weir_now();
		give_up(c, now);
		while (c->next < plan->call_count && epoch + plan->calls[c->next].at <= now)
			bring_one(c, now);
	}
	shutdown(c->end, SHUT_WR);
}

static struct caller caller_of(const struct host *host, unsigned number)
{
	return (struct caller){
		.host = host,
		.number = number,
		.end = host->ends[number][1],
		.limiter = host->limiter,
		.tallies = &host->shared->tallies[number * (host->scenario->phase_count + 1)],
		.next = number,
	};
}

static void *be_thread(void *arg)
{
	struct caller *caller = arg;

	call_all(caller);
	return NULL;
}

/* In a child process: it opens the limiter itself, and keeps only its own socket. */
static _Noreturn void be_process(struct host *host, unsigned number)
{
	struct caller caller = caller_of(host, number);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; i < host->count; i++) {
		close(host->ends[i][0]);
		if (i != number)
			close(host->ends[i][1]);
	}
	if (weir_shm_attach(host->block, host->block_size, &host->config, &caller.limiter, NULL,
			    0) != 0)
		_exit(EXIT_FAILURE);
	call_all(&caller);
	weir_shm_detach(caller.limiter);
	_exit(caller.broken ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* The service. */

struct service_call {
	struct task task; /* must be the first member */
	struct host *host;
	unsigned caller, stage;
	struct request request;
};

static void worked_on(void *arg, struct task *task, unsigned member)
{
	struct host *host = arg;
	struct service_call *call = (struct service_call *)task;
	const struct answer answer = {.call = call->request.call, .waited = task->waited};

	(void)member;
	if (++call->stage < host->scenario->station_count) {
		task->work = call->request.work[call->stage];
		staff_submit(&host->servers[call->stage], task, weir_now());
		return;
	}
	/* The write may fail if the caller has gone; ignore that. */
	(void)!send(host->ends[call->caller][0], &answer, sizeof(answer), MSG_NOSIGNAL);
	free(call);
}

/* False if the caller has gone. */
static bool take_request(struct host *host, unsigned caller)
{
	struct service_call *call = alloc_or_abort(sizeof(*call));
	ssize_t size = recv(host->ends[caller][0], &call->request, sizeof(call->request), 0);

	if (size != (ssize_t)sizeof(call->request)) {
		free(call);
		return false;
	}
	call->host = host;
	call->caller = caller;
	call->task.work = call->request.work[0];
	staff_submit(&host->servers[0], &call->task, weir_now());
	return true;
}

static void set_staff(struct host *host, const struct phase *phase)
{
	for (unsigned i = 0; i < host->scenario->station_count; i++) {
		const struct station_model model = scenario_station(host->scenario, phase, i);

		staff_change(&host->servers[i], model.workers, model.speed);
	}
}

/* End the previous phase, if any, and begin this one, if any. */
static void turn_to(struct host *host, size_t index)
{
	const struct planned_phase *turn = &host->plan.phases[index];
	const unsigned phases = host->scenario->phase_count;
	const uint32_t *limits = host->setup->limits;

	if (index > 0) {
		const struct planned_phase *before = turn - 1;
		struct tally *tally = &host->result->phases[before->phase].tally;

		tally->limit_area += meter_take(&host->shared->meter);
		tally->limit_last = weir_limit(host->limiter);
		tally->length += turn->at - before->at;
	}
	if (limits != NULL && turn->phase < phases &&
	    weir_limit_set(host->limiter, limits[turn->phase]) == 0)
		meter_set(&host->shared->meter, weir_limit(host->limiter));
	set_staff(host, turn->phase < phases ? &host->scenario->phases[turn->phase] : NULL);
}

/* Milliseconds until the next phase; -1: none. */
static int until_turn(const struct host *host, size_t turn)
{
	weir_time at, now = weir_now();

	if (turn >= host->plan.phase_count)
		return -1;
	at = host->shared->epoch + host->plan.phases[turn].at;
	return at > now ? (int)((at - now + WEIR_MS - 1) / WEIR_MS) : 0;
}

static void serve(struct host *host)
{
	struct pollfd inputs[CALLERS_MAX];
	unsigned left = host->count;
	size_t turn = 1;

	for (unsigned i = 0; i < host->count; i++)
		inputs[i] = (struct pollfd){.fd = host->ends[i][0], .events = POLLIN};
	turn_to(host, 0);
	while (left > 0 || turn < host->plan.phase_count) {
		poll(inputs, host->count, until_turn(host, turn));
		for (unsigned i = 0; i < host->count; i++) {
			if (inputs[i].revents == 0 || take_request(host, i))
				continue;
			inputs[i].fd = -1;
			left--;
		}
		if (until_turn(host, turn) == 0)
			turn_to(host, turn++);
	}
}

static void start_service(struct host *host)
{
	const struct scenario *s = host->scenario;

	for (unsigned i = 0; i < s->station_count; i++)
		staff_start(&host->servers[i], &s->stations[i].model, real_members(s, i), worked_on,
			    host);
}

static void end_service(struct host *host)
{
	struct tally *lateness = alloc_or_abort(sizeof(*lateness));

	for (unsigned i = 0; i < host->scenario->station_count; i++)
		staff_end(&host->servers[i], lateness);
	free(lateness);
}

/* The whole run. */

static void *map(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return at != MAP_FAILED ? at : NULL;
}

static int make_limiter(struct host *host)
{
	int r;

	host->config = *host->setup->limiter;
	host->config.seed = rng_seed_of(host->setup->seed, SEED_LIMITERS);
	host->config.observer = &host->observer;
	host->observer = (struct weir_observer){.window = meter_window,
						.arg = &host->shared->meter};
	if (!host->processes)
		return weir_limiter_create(&host->config, &host->limiter);
	host->block_size = weir_shm_size(&host->config, host->count + 1);
	host->block = host->block_size > 0 ? map(host->block_size) : NULL;
	if (host->block == NULL)
		return host->block_size > 0 ? -ENOMEM : -EINVAL;
	r = weir_shm_init(host->block, host->block_size, &host->config, host->count + 1, NULL, 0);
	if (r != 0)
		return r;
	return weir_shm_attach(host->block, host->block_size, &host->config, &host->limiter, NULL,
			       0);
}

static int make_ends(struct host *host)
{
	for (unsigned i = 0; i < host->count; i++)
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, host->ends[i]) != 0)
			return -errno;
	return 0;
}

/* Fork before the threads of the service start, so that they are not copied. */
static int start_callers(struct host *host, struct caller *callers)
{
	for (unsigned i = 0; i < host->count; i++) {
		int error = 0;

		callers[i] = caller_of(host, i);
		if (host->processes)
			host->children[i] = fork();
		else
			error = pthread_create(&host->threads[i], NULL, be_thread, &callers[i]);
		if (host->processes && host->children[i] == 0)
			be_process(host, i);
		if (error != 0 || host->children[i] < 0)
			return -EAGAIN;
	}
	for (unsigned i = 0; i < host->count && host->processes; i++)
		close(host->ends[i][1]);
	return 0;
}

static int await_callers(struct host *host)
{
	int error = 0, status;

	for (unsigned i = 0; i < host->count; i++) {
		if (!host->processes) {
			pthread_join(host->threads[i], NULL);
			close(host->ends[i][1]);
		} else if (waitpid(host->children[i], &status, 0) < 0 || status != 0) {
			error = -EIO;
		}
		close(host->ends[i][0]);
	}
	return error;
}

static void add_up(struct host *host)
{
	const unsigned phases = host->scenario->phase_count;
	struct run_result *result = host->result;
	struct weir_snapshot s;

	for (unsigned p = 0; p < phases; p++) {
		struct tally *sum = &result->phases[p].tally;

		for (unsigned i = 0; i < host->count; i++)
			tally_add(sum, &host->shared->tallies[i * (phases + 1) + p]);
		result->phases[p].class_good[0] = sum->good;
		result->phases[p].limiter_good[0] = sum->good;
		if (sum->inflight_max > host->shared->meter.highest)
			result->above = 1;
	}
	weir_snapshot_init(&s);
	weir_snapshot_take(host->limiter, &s);
	result->windows = s.windows;
	result->samples = s.succeeded + s.dropped + s.timed_out;
	result->leaked = s.inflight;
}

static int play(struct host *host)
{
	struct caller callers[CALLERS_MAX];
	int error = make_ends(host);

	if (error != 0)
		return error;
	host->shared->epoch = weir_now() + SETTLING;
	meter_begin(&host->shared->meter, weir_limit(host->limiter), host->shared->epoch);
	prctl(PR_SET_TIMERSLACK, 1UL);
	error = start_callers(host, callers);
	if (error != 0)
		return error;
	start_service(host);
	serve(host);
	error = await_callers(host);
	end_service(host);
	add_up(host);
	return error;
}

int callers_run(const struct run_setup *setup, unsigned count, bool processes,
		struct run_result *result)
{
	const size_t tallies = count * (setup->scenario->phase_count + 1);
	struct host host = {
		.setup = setup,
		.scenario = setup->scenario,
		.count = count,
		.processes = processes,
		.shared_size = sizeof(struct shared) + tallies * sizeof(struct tally),
		.result = result,
	};
	int error;

	memset(result, 0, sizeof(*result));
	host.shared = map(host.shared_size);
	if (host.shared == NULL)
		return -ENOMEM;
	plan_make(&host.plan, host.scenario, setup->seed);
	error = make_limiter(&host);
	if (error == 0) {
		error = play(&host);
		weir_limiter_destroy(host.limiter);
	}
	if (host.block != NULL)
		munmap(host.block, host.block_size);
	plan_free(&host.plan);
	munmap(host.shared, host.shared_size);
	return error;
}
