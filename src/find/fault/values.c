/* SPDX-License-Identifier: Apache-2.0
 * Executes the failing threads and keeps what they found (see values.h).
 */
#include "find/fault/values.h"

#include <endian.h>
#include <math.h>
#include <string.h>

#define THREADS_MAX  64
#define STEPS_THREAD	1000000u	/* of a third of a microsecond */
#define STEPS_ALL	3000000u

static void keep(struct values *v, const struct sass_thread *t, const struct sass_found *f)
{
	struct checked *to;
	size_t i;

	v->n_found++;
	for (i = 0; i < v->n_kept; i++)
		if (v->value[i].at == f->from.at)
			return;
	if (v->n_kept == VALUES_MAX)
		return;
	to = &v->value[v->n_kept++];
	*to = (struct checked){
		.at = f->from.at, .n = f->from.n, .base = f->from.base, .compared = f->compared, .compare = f->compare};
	if (t->memory(t->arg, to->at, to->raw, sizeof(to->raw)))
		to->n_raw = sizeof(to->raw);
	else if (t->memory(t->arg, to->at, to->raw, to->n))
		to->n_raw = to->n;
}

static enum values_answer answer_of(const struct sass_thread *t, enum sass_end end, const struct sass_found *f)
{
	uint8_t byte[8];

	switch (end) {
	case SASS_END_THERE:
		if (f->from.n == 0)
			return VALUES_NONE;
		if (f->from.n == SASS_SEVERAL)
			return f->missing ? VALUES_UNREAD : VALUES_LOST;
		return t->memory(t->arg, f->from.at, byte, f->from.n < sizeof(byte) ? f->from.n : sizeof(byte))
			       ? VALUES_FOUND
			       : VALUES_PLACES;
	case SASS_END_MISSING:
		return VALUES_UNREAD;
	default:
		return f->missing && end == SASS_END_LONG ? VALUES_UNREAD : VALUES_LOST;
	}
}

static uint32_t warp_lane(const struct sass_thread *t)
{
	return (t->thread[0] + t->block_dim[0] * (t->thread[1] + t->block_dim[1] * t->thread[2])) % 32;
}

/* All threads must agree, and one whose address is known must have the one that was computed: else the code was not followed rightly. */
static void keep_pointer(struct values *v, const struct values_thread *t, enum sass_end end, const struct sass_found *f)
{
	bool fits = end == SASS_END_THERE && f->pointer >= 0 &&
		    !(t->address && f->address_known && f->address != t->address);

	v->pointer_known = fits && (!v->n_threads || (v->pointer_known && v->pointer == (unsigned)f->pointer));
	v->pointer = fits ? (unsigned)f->pointer : 0;
}

void values_find(struct values *v, const struct sass_thread *t, uint64_t pc, bool access,
		 const struct values_thread *threads, size_t n)
{
	struct sass_thread one = *t;
	unsigned steps = STEPS_ALL;
	enum values_answer answer;
	enum sass_end end;
	struct sass_found f;
	size_t i;

	*v = (struct values){.answer = VALUES_NONE};
	for (i = 0; i < n && i < THREADS_MAX && steps > 0; i++) {
		memcpy(one.thread, threads[i].thread, sizeof(one.thread));
		memcpy(one.block, threads[i].block, sizeof(one.block));
		one.id = warp_lane(&one);
		end = sass_run(&one, pc, access, steps < STEPS_THREAD ? steps : STEPS_THREAD, &f);
		answer = answer_of(t, end, &f);
		steps -= f.steps < steps ? f.steps : steps;
		if (access)
			keep_pointer(v, &threads[i], end, &f);
		v->n_threads++;
		v->n_left += end == SASS_END_LEFT;
		if (i == 0 || answer == VALUES_FOUND || (answer == VALUES_PLACES && v->answer != VALUES_FOUND))
			v->answer = answer;
		if (answer == VALUES_LOST)
			v->lost_at = f.lost_at;
		if (answer == VALUES_FOUND || answer == VALUES_PLACES)
			keep(v, t, &f);
		/* threads of one kernel run the same code: another one will not be easier. But one that ended well did not fail. */
		else if (i >= 3 && v->n_kept == 0 && end != SASS_END_LEFT)
			break;
	}
}

int64_t checked_integer(const uint8_t *raw, unsigned n)
{
	uint64_t v;

	memcpy(&v, raw, sizeof(v));
	v = le64toh(v);
	switch (n) {
	case 1:
		return (int64_t)(v & 0xff);
	case 2:
		return (int16_t)v;
	case 4:
		return (int32_t)v;
	default:
		return (int64_t)v;
	}
}

static double float_of(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static double half_of(uint16_t h)
{
	unsigned exponent = h >> 10 & 31, fraction = h & 1023;
	double v = exponent == 31 ? (fraction ? NAN : INFINITY)
		   : exponent	  ? ldexp(1024 + fraction, (int)exponent - 25)
				  : ldexp(fraction, -24);

	return h >> 15 ? -v : v;
}

static bool same(double a, double b)
{
	return (isnan(a) && isnan(b)) || fabs(a) == fabs(b);
}

bool checked_real(const struct checked *v, double *number)
{
	uint64_t bits, operand = v->compare.n_a ? v->compare.a : v->compare.b;
	double compared, brain, half;

	memcpy(&bits, v->raw, sizeof(bits));
	bits = le64toh(bits);
	if (v->n_raw < v->n)
		return false;
	switch (v->n) {
	case 8:
		memcpy(number, &bits, sizeof(*number));
		return true;
	case 4:
		*number = float_of((uint32_t)bits);
		return true;
	case 2:
		/* the kernel widened it to compare */
		if (!v->compare.known || v->compare.width != 4)
			return false;
		compared = float_of((uint32_t)operand);
		brain = float_of((uint32_t)bits << 16);
		half = half_of((uint16_t)bits);
		*number = same(compared, brain) ? brain : half;
		return same(compared, brain) || same(compared, half);
	default:
		return false;
	}
}
