/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joining a limit.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/protocol/allocator.h"
#include "fleet/store/store.h"

void weir_share_config_init_sized(struct weir_share_config *config, size_t size)
{
	memset(config, 0, size);
	config->size = size;
}

void weir_share_info_init_sized(struct weir_share_info *info, size_t size)
{
	memset(info, 0, size);
	info->size = size;
}

void share_free(struct weir_share *s)
{
	allocator_free(s);
	view_free(&s->view);
	ledger_free(&s->plan.ledger);
	free(s);
}

bool fleet_is_name(const char *name)
{
	return is_word(name, WEIR_SHARE_NAME_MAX);
}

static int check_share(const struct weir_share_config *c, char *why)
{
	if (c->size != sizeof(*c))
		return store_say(-EINVAL, why,
				 "The configuration has the size of another version.");
	if (!fleet_is_name(c->name))
		return store_say(-EINVAL, why, "name is not 1 to %d letters, digits and -_.:@.",
				 WEIR_SHARE_NAME_MAX);
	if ((unsigned)c->loss > WEIR_LOSS_OPEN)
		return store_say(-EINVAL, why, "loss is not one of enum weir_loss.");
	if ((unsigned)c->headroom > WEIR_HEADROOM_NEVER)
		return store_say(-EINVAL, why, "headroom is not one of enum weir_headroom.");
	if (c->weight > WEIR_SHARE_WEIGHT_MAX)
		return store_say(-EINVAL, why, "weight is above 2^20.");
	return limit_check(&(const struct limit_record){.capacity = c->capacity,
							.allotment = c->allotment,
							.reserved = c->reserved,
							.members = c->members},
			   why);
}

static struct weir_share *make_share(struct weir_fleet *f, const struct weir_share_config *c)
{
	struct weir_share *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->fleet = f;
	s->config = *c;
	(void)snprintf(s->name, sizeof(s->name), "%s", c->name);
	s->config.name = s->name;
	if (s->config.weight == 0)
		s->config.weight = 1;
	if (s->config.period == 0)
		s->config.period = WEIR_S;
	(void)snprintf(s->limit_key, sizeof(s->limit_key), "%s/cfg", s->name);
	(void)snprintf(s->ledger_key, sizeof(s->ledger_key), "%s/led", s->name);
	(void)snprintf(s->learning_key, sizeof(s->learning_key), "%s/" LEARNING_KEY, s->name);
	(void)snprintf(s->up_key, sizeof(s->up_key), "%s/up", s->name);
	s->carried_bound = s->latest = WEIR_FOREVER;
	s->longest = f->lease;
	s->limit = (struct limit_record){
		.capacity = c->capacity,
		.allotment = c->allotment,
		.reserved = c->reserved,
		.members = c->members,
		.lease = f->lease / WEIR_MS,
		.allocated = c->allocated != 0,
	};
	s->effective = c->capacity;
	atomic_init(&s->want, WANT_UNSET);
	atomic_init(&s->lost, c->reserved);
	return s;
}

static int add_share(struct weir_fleet *f, const struct weir_share_config *c,
		     struct weir_share **share, char *why)
{
	struct weir_share *s;

	for (s = f->shares; s != NULL; s = s->next)
		if (strcmp(s->name, c->name) == 0)
			return store_say(-EEXIST, why,
					 "This process has joined that limit already.");
	if (f->count == WEIR_FLEET_SHARES_MAX)
		return store_say(-ENOSPC, why,
				 "This process has joined %d limits, which is the maximum.",
				 WEIR_FLEET_SHARES_MAX);
	s = make_share(f, c);
	if (s == NULL)
		return store_say(-ENOMEM, why, "Out of memory.");
	share_renumber(s);
	pthread_mutex_lock(&f->notify_lock);
	pthread_mutex_lock(&f->report_lock);
	s->next = f->shares;
	f->shares = s;
	pthread_mutex_unlock(&f->report_lock);
	pthread_mutex_unlock(&f->notify_lock);
	f->count++;
	share_publish(s);
	f->refresh_now = true;
	fleet_ring(f);
	*share = s;
	return 0;
}

int weir_share_join(struct weir_fleet *f, const struct weir_share_config *config,
		    struct weir_share **share, char *why, size_t why_size)
{
	char text[WHY_SIZE] = "";
	int r = check_share(config, text);

	*share = NULL;
	if (r == 0) {
		fair_lock_take(&f->lock);
		r = add_share(f, config, share, text);
		fair_lock_release(&f->lock);
	}
	if (why != NULL && why_size > 0)
		(void)snprintf(why, why_size, "%s", text);
	return r;
}
