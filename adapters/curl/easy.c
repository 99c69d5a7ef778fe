/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transfers of easy handles, in the calling thread.
 */

#include "guard.h"

#include <errno.h>
#include <pthread.h>

static const struct weir_curl_call ordinary;

/* What a transfer in progress holds. */
struct performing {
	struct weir_curl *guard;
	struct hold *hold;
};

/* Acquire a permit, and wait until the origin is open. */
static int acquire(struct weir_curl *guard, const struct weir_curl_call *call, struct hold *hold)
{
	const bool bypass = (call->call.flags & WEIR_CALL_BYPASS) != 0;
	int error;

	if (!bypass && closed_for(guard, hold->limiter, call->deadline))
		return -EBUSY;
	error = call->deadline != 0
			? weir_acquire_for(hold->limiter, &call->call, call->deadline, &hold->token)
			: weir_try_acquire_for(hold->limiter, &call->call, &hold->token);
	if (error != 0 || bypass || closed_wait(guard, hold->limiter, call->deadline))
		return error;
	return call->deadline != 0 ? -ETIMEDOUT : -EBUSY;
}

/* The thread is cancelled: libcurl has cancellation points. */
static void give_up(void *arg)
{
	const struct performing *p = arg;

	hold_drop(p->guard, p->hold, WEIR_CANCELLED);
}

static CURLcode perform(struct weir_curl *guard, struct hold *hold, CURL *easy)
{
	struct performing performing = {guard, hold};
	CURLcode result;

	pthread_cleanup_push(give_up, &performing);
	result = curl_easy_perform(easy);
	pthread_cleanup_pop(0);
	return result;
}

int weir_curl_perform(struct weir_curl *guard, CURL *easy, const struct weir_curl_call *call,
		      CURLcode *result)
{
	struct hold hold;
	int error;

	*result = CURLE_OK;
	if (call == NULL)
		call = &ordinary;
	error = hold_find(guard, easy, call, &hold);
	if (error != 0)
		return error;
	error = acquire(guard, call, &hold);
	if (error != 0) {
		hold_drop(guard, &hold, WEIR_IGNORE);
		return error;
	}
	*result = perform(guard, &hold, easy);
	hold_finish(guard, &hold, easy, *result);
	return 0;
}
