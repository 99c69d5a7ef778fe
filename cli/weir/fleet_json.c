/* SPDX-License-Identifier: BSD-2-Clause */
#include "fleet.h"

#include <inttypes.h>

#include "json.h"

/* As text: members' numbers exceed the integers that many JSON parsers represent exactly. */
static json_t *member_id(uint64_t id)
{
	return id != 0 ? json_sprintf("%016" PRIx64, id) : json_null();
}

/* null where there is no member, or nothing to say. */
static json_t *label(const char *text)
{
	return text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *fence(uint64_t n)
{
	return n != 0 ? json_count(n) : json_null();
}

static json_t *members_of(const struct fleet_reading *r)
{
	json_t *members = json_array();

	for (size_t i = 0; i < r->member_count; i++) {
		const struct weir_fleet_member *m = &r->members[i];

		json_array_append_new(
			members,
			json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:i,s:b,s:b,s:o,s:o}", "id",
				  member_id(m->id), "label", label(m->label), "fence",
				  fence(m->fence), "wants", json_count(m->wants), "grant",
				  json_count(m->grant), "share",
				  json_count(m->fence != 0 ? fleet_share(m) : 0), "reserved",
				  json_count(m->reserved), "weight", json_count(m->weight),
				  "priority", (int)m->priority, "drained", (int)m->drained,
				  "label_drained", (int)m->label_drained, "mismatch",
				  label(m->mismatch), "reason", label(m->reason)));
	}
	return members;
}

/* null if its checkpoint was never set back. */
static json_t *rewinds_of(const struct weir_work_partition *p)
{
	if (p->rewinds == 0)
		return json_null();
	return json_pack("{s:o,s:o,s:o}", "times", json_count(p->rewinds), "last",
			 json_count(p->rewound_at), "by", label(p->rewound_by));
}

static json_t *partition_of(const struct weir_work_partition *p)
{
	json_t *checkpoint = p->checkpoints != 0
				     ? json_pack("{s:o,s:o}", "sequence", json_count(p->sequence),
						 "bytes", json_count(p->size))
				     : json_null();

	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "partition",
			 json_count(p->partition), "owner", member_id(p->owner), "label",
			 label(p->owner_label), "fence", fence(p->fence), "asked_by",
			 member_id(p->requester), "asked_by_label", label(p->requester_label),
			 "checkpoint", checkpoint, "weight", fence(p->owner_weight), "rewound",
			 rewinds_of(p));
}

static json_t *partitions_of(const struct fleet_reading *r, bool details)
{
	json_t *json = json_pack("{s:o,s:o,s:o}", "member_count", json_count(r->workers), "owned",
				 json_count(r->owned), "checkpoints", json_count(r->checkpoints));
	json_t *partitions;

	if (!details)
		return json;
	if (r->work.capacity > 0) {
		json_object_set_new(json, "capacity", json_count(r->work.capacity));
		json_object_set_new(json, "factor", json_count(r->work.factor));
		json_object_set_new(json, "changes", json_count(r->work.changes));
	}
	partitions = json_array();
	for (size_t i = 0; i < r->partition_count; i++)
		json_array_append_new(partitions, partition_of(&r->partitions[i]));
	json_object_set_new(json, "partitions", partitions);
	return json;
}

static json_t *limit_of(const struct fleet_reading *r, bool details)
{
	const struct weir_fleet_limit *l = &r->limit;
	json_t *json;

	if (l->version == 0)
		return json_pack("{s:s,s:b,s:o}", "name", r->name, "other_version",
				 (int)r->other_version, "partitions", partitions_of(r, details));
	json = json_pack(
		"{s:s,s:o,s:o,s:o,s:o,s:s,s:o,s:o,s:o,s:f,s:o,s:o,s:f,s:o,s:b,s:o}", "name",
		r->name, "capacity", json_count(l->capacity), "effective", json_count(l->effective),
		"granted", json_count(l->granted), "wanted", json_count(l->wanted), "allotment",
		fleet_allotment(l->allotment), "reserved", json_count(l->reserved), "members_max",
		json_count(l->members_max), "member_count", json_count(l->members), "lease_seconds",
		(double)l->lease / (double)WEIR_S, "version", json_count(l->version), "partitions",
		partitions_of(r, details), "learning_seconds", (double)l->learning / (double)WEIR_S,
		"reason", label(l->reason), "allocated", (int)(l->allocated != 0), "allocator",
		label(l->allocator));
	json_object_set_new(json, "learning_period_seconds",
			    l->learning_period != 0
				    ? json_real((double)l->learning_period / (double)WEIR_S)
				    : json_null());
	if (details)
		json_object_set_new(json, "members", members_of(r));
	return json;
}

bool fleet_json(FILE *out, const struct fleet_readings *readings, bool details, bool one_line)
{
	json_t *all = json_array();
	bool good = true;

	for (size_t i = 0; i < readings->count && good; i++)
		good = json_array_append_new(all, limit_of(&readings->at[i], details)) == 0;
	return json_print(out, "limits", all, one_line) && good;
}
