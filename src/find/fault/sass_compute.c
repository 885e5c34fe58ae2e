/* SPDX-License-Identifier: Apache-2.0
 * Executes integer arithmetic (see sass_math.h). It only answers what is certain.
 */
#include "find/fault/sass_math.h"

#define LOW	0xffffffffull

static uint64_t sign_extend(uint64_t v)
{
	return (uint64_t)(int64_t)(int32_t)(uint32_t)v;
}

/* A negative operand is its inverse plus one, which counts as a carry: that is how the borrow of a difference works. */
static uint64_t signed_part(const struct sass_math *m, const struct sass_source *s, uint64_t v, unsigned *carry)
{
	if (!s->minus)
		return v;
	*carry += !m->extended;
	return ~v & (m->ab_64 ? ~0ull : LOW);
}

static void compute_sum(const struct sass_math *m, uint64_t x, uint64_t y, uint64_t z, unsigned carry, uint64_t *value,
			unsigned *over)
{
	uint64_t total;

	if (m->ab_64) {
		*value = x + y + z + carry;
		return;
	}
	total = x + y + z + carry;
	*value = total & LOW;
	*over = (unsigned)(total >> 32);
}

static void compute_add(const struct sass_math *m, const struct sass_values *in, uint64_t *value, unsigned *over)
{
	unsigned carry = in->carry;
	uint64_t x = signed_part(m, &m->a, in->a, &carry), y = signed_part(m, &m->b, in->b, &carry);
	uint64_t z = signed_part(m, &m->c, in->c, &carry);

	compute_sum(m, x, y, z, carry, value, over);
}

static void compute_lea(const struct sass_math *m, const struct sass_values *in, uint64_t *value, unsigned *over)
{
	uint64_t wide = (m->is_signed ? sign_extend(in->a) : in->c << 32 | in->a) << m->shift;
	unsigned carry = in->carry;
	uint64_t y = signed_part(m, &m->b, in->b, &carry);

	compute_sum(m, m->high ? wide >> 32 : wide & LOW, y, 0, carry, value, over);
}

static void compute_mad_wide(const struct sass_math *m, const struct sass_values *in, uint64_t *value, unsigned *over)
{
	uint64_t product = m->is_signed ? sign_extend(in->a) * sign_extend(in->b) : in->a * in->b;
	uint64_t total = product + in->c;

	*over = total < product;
	*value = total + in->carry;
	*over += *value < total;
}

static void compute_mad(const struct sass_math *m, const struct sass_values *in, uint64_t *value, unsigned *over)
{
	uint64_t product = m->is_signed ? sign_extend(in->a) * sign_extend(in->b) : in->a * in->b;
	unsigned carry = in->carry;
	uint64_t z = signed_part(m, &m->c, in->c, &carry);

	if (m->c_64)
		compute_mad_wide(m, in, value, over);
	else if (m->high)
		*value = product >> 32;
	else
		*value = (product + z + carry) & LOW;
}

/* Shifting by 64 or more shifts everything out, by 32 or more for 32-bit numbers. */
static bool compute_shift(const struct sass_math *m, const struct sass_values *in, uint64_t *value)
{
	uint64_t wide = in->c << 32 | in->a, by = in->b;

	if (m->wrap)
		by &= m->shift_64 ? 63 : 31;
	else if (!m->shift_64 && by >= 32) {
		/* the other half would be shifted in: only seen with zeros there */
		if (m->right ? !m->high || in->a : m->high || in->c)
			return false;
		by = 64;
	}
	if (by >= 64)
		wide = m->right && m->is_signed && in->c >> 31 ? ~0ull : 0;
	else if (!m->right)
		wide <<= by;
	else
		wide = m->is_signed ? (uint64_t)((int64_t)wide >> by) : wide >> by;
	*value = m->high ? wide >> 32 : wide & LOW;
	return true;
}

static uint64_t compute_logic(const struct sass_math *m, const struct sass_values *in)
{
	uint64_t v = 0;
	unsigned i;

	for (i = 0; i < 8; i++)
		if (m->table >> i & 1)
			v |= (i & 4 ? in->a : ~in->a) & (i & 2 ? in->b : ~in->b) & (i & 1 ? in->c : ~in->c);
	return v & LOW;
}

bool sass_compute(const struct sass_math *m, const struct sass_values *in, uint64_t *value, unsigned *carry)
{
	*carry = 0;
	switch (m->op) {
	case SASS_ADD:
		compute_add(m, in, value, carry);
		return true;
	case SASS_LEA:
		compute_lea(m, in, value, carry);
		return true;
	case SASS_MAD:
		compute_mad(m, in, value, carry);
		return true;
	case SASS_SHIFT:
		return compute_shift(m, in, value);
	case SASS_LOGIC:
		*value = compute_logic(m, in);
		return true;
	case SASS_COPY:
		*value = in->b;
		return true;
	default:
		return false;
	}
}
