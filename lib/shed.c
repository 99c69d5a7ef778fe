/*
 * Where the threshold of shedding goes. shed.h says what it is.
 *
 * Let part be the part of all calls that is above the threshold. Refusals among these
 * mean that they alone are too many: part falls by the fraction of them
 * that was refused. While next to none is refused it grows slowly, as DAGOR's does;
 * slowly costs nothing, since calls below the threshold use what room there is.
 */

#include "lib/shed.h"

#include <string.h>

#define RELAXED memory_order_relaxed

/* Fewer calls than this tell nothing yet: the step waits for more. */
#define CALLS_MIN 20

/* Of the calls above the threshold, so many may be refused without its moving. */
#define TOLERANCE 0.01

/* By this much part grows a step. DAGOR's is 0.01 too. */
#define GROWTH 0.01

void shed_init(const struct shedding *s)
{
	memset(s->arrivals, 0, (size_t)s->parts * s->stripes * sizeof(*s->arrivals));
	for (uint32_t p = 0; p < s->parts; p++) {
		memset(&s->thresholds[p], 0, sizeof(s->thresholds[p]));
		s->thresholds[p].part = 1;
		for (uint32_t i = 0; i < LEVELS; i++)
			atomic_init(&s->thresholds[p].pass[i], WHOLE);
	}
}

/* Of each WHOLE calls, pass are chosen, evenly: whether the n-th is. */
static bool is_chosen(uint32_t n, uint32_t pass)
{
	return ((uint64_t)n + 1) * pass / WHOLE != (uint64_t)n * pass / WHOLE;
}

bool shed_is_low(const struct shedding *s, uint32_t stripe, uint16_t part, int16_t priority)
{
	struct arrivals *arrivals = &s->arrivals[stripe * s->parts + part];
	uint32_t level = (uint32_t)(priority - WEIR_PRIORITY_MIN);
	uint32_t pass = atomic_load_explicit(&s->thresholds[part].pass[level], RELAXED);
	uint32_t n = atomic_fetch_add_explicit(&arrivals->arrived[level], 1, RELAXED);

	if (pass < WHOLE && !is_chosen(n, pass))
		return true;
	atomic_fetch_add_explicit(&arrivals->high, 1, RELAXED);
	return false;
}

/* A partition's counters, over all stripes. */
struct counts {
	uint32_t arrived[LEVELS], high, refused;
};

static void add_up(const struct shedding *s, uint32_t part, struct counts *sum)
{
	for (uint32_t k = 0; k < s->stripes; k++) {
		const struct arrivals *a = &s->arrivals[k * s->parts + part];

		sum->refused += atomic_load_explicit(&a->refused, RELAXED);
		sum->high += atomic_load_explicit(&a->high, RELAXED);
		for (uint32_t i = 0; i < LEVELS; i++)
			sum->arrived[i] += atomic_load_explicit(&a->arrived[i], RELAXED);
	}
}

/*
 * Lay part of all calls above the threshold, from the highest level down. The highest
 * that there is gives way to none.
 */
static void set_levels(const struct shedding *s, struct threshold *t, const uint32_t *calls,
		       double all)
{
	double left = t->part * all;
	bool highest = true;

	for (uint32_t i = LEVELS; i-- > 0;) {
		double pass = calls[i] > 0 ? left / calls[i] : left > 0;

		if (highest || pass > 1)
			pass = 1;
		if (pass < s->floor)
			pass = s->floor;
		left = left > calls[i] ? left - calls[i] : 0;
		highest = highest && calls[i] == 0;
		atomic_store_explicit(&t->pass[i], (uint32_t)(pass * WHOLE), RELAXED);
	}
}

static void steer(const struct shedding *s, uint32_t part)
{
	struct threshold *t = &s->thresholds[part];
	struct counts now = {.high = 0};
	uint32_t calls[LEVELS], high, refused;
	double all = 0;

	add_up(s, part, &now);
	for (uint32_t i = 0; i < LEVELS; i++) {
		calls[i] = now.arrived[i] - t->arrived[i];
		all += calls[i];
	}
	if (all < CALLS_MIN)
		return;
	high = now.high - t->high;
	refused = now.refused - t->refused;
	memcpy(t->arrived, now.arrived, sizeof(now.arrived));
	t->high = now.high;
	t->refused = now.refused;

	if (refused > TOLERANCE * high)
		t->part = (refused < high ? high - refused : 0) / all;
	else
		t->part = t->part + GROWTH < 1 ? t->part + GROWTH : 1;
	set_levels(s, t, calls, all);
}

void shed_steer(const struct shedding *s)
{
	for (uint32_t part = 0; part < s->parts; part++)
		steer(s, part);
}
