/* SPDX-License-Identifier: Apache-2.0
 * What PyTorch's kernels do with the memory that they are given (see recall_write.h): which pointer they write through, and, of the
 * simplest ones, what.
 *
 * All of it follows from a kernel's name and parameters. Elementwise kernels get an array of pointers, the first of which is the result's; a
 * pointer to constant elements is only read. About any other, nothing is known.
 */
#include "find/fault/recall_write.h"

#include <math.h>
#include <string.h>

#include "base/pool.h"
#include "base/str.h"
#include "case/signature.h"
#include "cuwhy/format.h"
#include "find/fault/view.h"
#include "read/recording/trace.h"

#define ELEMENT_MAX	16	/* bytes; PyTorch's largest is a complex number of two doubles */
#define OPERANDS	2	/* the parameter that is the array of pointers */

static const struct { uint8_t number; struct element_type type; } types[] = {
#define TYPE(number, bytes, real, is_signed) {number, {bytes, real, is_signed}},
#include "kb/torch_types.def"
};

static bool type_numbered(uint8_t number, struct element_type *to)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].number == number) {
			*to = types[i].type;
			return true;
		}
	return false;
}

static bool type_named(const char *name, size_t n, struct element_type *to)
{
	static const struct { const char *name; uint8_t number; } names[] = {
		{"unsigned char", 0}, {"signed char", 1}, {"short", 2},	 {"int", 3},
		{"long", 4},	      {"float", 6},	  {"double", 7},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i].name) == n && !memcmp(names[i].name, name, n))
			return type_numbered(names[i].number, to);
	return false;
}

/* "long" of "FillFunctor<long>", or of "{lambda(long)#1}". */
static bool type_behind(const char *kernel, const char *word, char end, struct element_type *to)
{
	for (const char *at = kernel, *stop; (at = strstr(at, word)) != NULL;) {
		at += strlen(word);
		stop = strchr(at, end);
		if (stop && type_named(at, (size_t)(stop - at), to))
			return true;
	}
	return false;
}

/* The bytes of a parameter that were recorded. */
static const uint8_t *param_at(const struct cw_launch *l, const struct cw_layout *y, uint32_t number, size_t n)
{
	if (!y || number >= y->n || y->param[number].size < n || (size_t)y->param[number].off + n > l->n_param ||
	    l->n_param > CW_PARAM_BYTES)
		return NULL;
	return l->params + y->param[number].off;
}

static uint64_t word_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static bool made_fill(struct made *m, const char *kernel, const struct cw_launch *l, const struct cw_layout *y)
{
	const uint8_t *value;

	if (!type_behind(kernel, "FillFunctor<", '>', &m->of) || y->param[1].size != m->of.bytes)
		return false;
	value = param_at(l, y, 1, m->of.bytes);
	if (value)
		memcpy(m->fill, value, m->of.bytes);
	m->how = MADE_FILL;
	return value != NULL;
}

/* x + 1, x - 1: the number and what it is multiplied with. */
static bool made_shift(struct made *m, const char *kernel, const struct cw_launch *l, const struct cw_layout *y)
{
	const uint8_t *value;

	if (!type_behind(kernel, "CUDAFunctorOnSelf_add<", '>', &m->of) || m->of.real || m->of.bytes != 8 ||
	    y->param[1].size != 16)
		return false;
	value = param_at(l, y, 1, 16);
	if (!value)
		return false;
	m->how = MADE_SHIFT;
	m->in = m->of;
	m->add = (int64_t)(word_at(value) * word_at(value + 8));
	return true;
}

/* A number of a type, and four bytes with its size. */
static bool cast_type(const struct cw_launch *l, const struct cw_layout *y, uint32_t number, struct element_type *to)
{
	const uint8_t *p = param_at(l, y, number, 8);
	uint32_t bytes;

	if (!p || !type_numbered(p[0], to))
		return false;
	memcpy(&bytes, p + 4, sizeof(bytes));
	return bytes == to->bytes;
}

enum { LOADER = 5, STORER = 6 };	/* parameters of an elementwise kernel that casts */

static bool made_copy(struct made *m, const char *kernel, const struct cw_launch *l, const struct cw_layout *y)
{
	if (!strstr(kernel, "direct_copy_kernel_cuda"))
		return false;
	if (strstr(kernel, "LoadWithCast<1>") && strstr(kernel, "StoreWithCast<1>")) {
		m->how = MADE_CAST;
		return cast_type(l, y, LOADER, &m->in) && cast_type(l, y, STORER, &m->of);
	}
	if (strstr(kernel, "WithCast") || !type_behind(kernel, "{lambda(", ')', &m->of))
		return false;
	m->how = MADE_SAME;
	m->in = m->of;
	return true;
}

static bool made_range(struct made *m, const char *kernel, const struct cw_launch *l, const struct cw_layout *y)
{
	const uint8_t *value = param_at(l, y, 1, 16);

	/* the fourth of its lambdas is that for int64 */
	if (!strstr(kernel, "arange_cuda_out") || !value ||
	    !strstr(kernel, "{lambda()#4}::operator()() const::{lambda(long)#1}>("))
		return false;
	m->how = MADE_RANGE;
	m->of = (struct element_type){.bytes = 8, .is_signed = true};
	m->first = (int64_t)word_at(value);
	m->add = (int64_t)word_at(value + 8);
	return true;
}

static bool gaps_in(const char *kernel)
{
	for (const char *at = kernel; (at = strstr(at, "OffsetCalculator<")) != NULL; at++)
		if (at - kernel < 7 || memcmp(at - 7, "Trivial", 7) != 0)
			return true;
	return false;
}

/* `to`, and how much from there on; `how` if that is known, too. */
static void elementwise(struct made *m, const char *kernel, const struct cw_launch *l, const struct cw_layout *y,
			uint64_t to)
{
	const uint8_t *count = param_at(l, y, 0, 4), *from = param_at(l, y, OPERANDS, 16);
	uint32_t n = 0;

	*m = (struct made){.to = to};
	if (count)
		memcpy(&n, count, sizeof(n));
	m->from = from ? word_at(from + 8) : 0;
	if (!count || gaps_in(kernel) ||
	    !(made_fill(m, kernel, l, y) || (from && (made_shift(m, kernel, l, y) || made_copy(m, kernel, l, y)))))
		m->how = MADE_UNKNOWN;
	m->bytes = !count || gaps_in(kernel) ? UINT64_MAX - to : (uint64_t)n * (m->how ? m->of.bytes : ELEMENT_MAX);
}

static bool is_elementwise(const char *kernel)
{
	struct pool pool = {0};
	const char *name = kernel_short_name(kernel, &pool);
	bool is = (!strcmp(name, "at::native::vectorized_elementwise_kernel") ||
		   !strcmp(name, "at::native::unrolled_elementwise_kernel")) &&
		  (strstr(kernel, ", std::array<char*, ") || strstr(kernel, ", at::detail::Array<char*, "));

	pool_release(&pool);
	return is;
}

/* The byte is in the array of pointers of an elementwise kernel. */
static bool is_operand(const char *kernel, const struct cw_layout *y, unsigned at)
{
	return y && y->n > OPERANDS && at >= y->param[OPERANDS].off &&
	       at < (unsigned)y->param[OPERANDS].off + y->param[OPERANDS].size && is_elementwise(kernel);
}

bool launch_points(struct trace *t, const struct cw_launch *l, unsigned at)
{
	const char *kernel = trace_function_name(t, l->func);
	struct signature_param p;

	if (is_operand(kernel, trace_layout(t, trace_function(t, l->func)), at))
		return true;
	for (unsigned i = 0; signature_param(kernel, i, &p) && p.offset <= at; i++)
		if (p.offset == at)
			return !p.is_integer && p.size >= sizeof(uint64_t);
	return false;
}

bool launch_operand(struct trace *t, const struct cw_launch *l, unsigned which, struct operand *to)
{
	const char *kernel = trace_function_name(t, l->func);
	const struct cw_layout *y = trace_layout(t, trace_function(t, l->func));
	const uint8_t *count = param_at(l, y, 0, 4), *list = param_at(l, y, OPERANDS, 24);
	uint32_t n;

	if (!count || !list || which > 2 || gaps_in(kernel) || strstr(kernel, "WithCast") || !is_elementwise(kernel) ||
	    !type_behind(kernel, "{lambda(", ',', &to->of))
		return false;
	memcpy(&n, count, sizeof(n));
	to->n = n;
	to->at = word_at(list + 8 * (size_t)which);
	return true;
}

enum touch launch_touches(struct trace *t, const struct cw_launch *l, unsigned at, struct made *m)
{
	const char *kernel = trace_function_name(t, l->func), *name;
	const struct cw_layout *y = trace_layout(t, trace_function(t, l->func));
	struct signature_param p;
	struct pool pool = {0};
	enum touch touch = TOUCH_MAYBE;

	*m = (struct made){.how = MADE_UNKNOWN};
	name = kernel_short_name(kernel, &pool);
	if (is_operand(kernel, y, at)) {
		touch = at == y->param[OPERANDS].off ? TOUCH_WRITES : TOUCH_READS;
		if (touch == TOUCH_WRITES)
			elementwise(m, kernel, l, y, word_at(l->params + at));
	} else if (y && y->n > OPERANDS && at == y->param[OPERANDS].off &&
		   str_ends(name, "elementwise_kernel_with_index") && made_range(m, kernel, l, y)) {
		touch = TOUCH_WRITES;
		m->to = word_at(l->params + at);
		m->bytes = (uint64_t)word_at(l->params) % ((uint64_t)1 << 32) * m->of.bytes;
	} else if ((signature_pointer_at(kernel, at, &p) && p.is_const) || signature_number_at(kernel, at) ||
		   view_iterates_at(kernel, name, at)) {
		touch = TOUCH_READS;	/* or it is no pointer: what is not used of such parameters has whatever was there before */
	}
	pool_release(&pool);
	return touch;
}

static bool whole_read(struct element_type type, const uint8_t *raw, int64_t *to)
{
	uint64_t v = 0;

	memcpy(&v, raw, type.bytes);
	if (type.is_signed && type.bytes < 8 && v >> (type.bytes * 8 - 1))
		v |= ~0ull << (type.bytes * 8);
	*to = (int64_t)v;
	return true;
}

bool number_read(struct element_type type, const uint8_t *raw, struct number *to)
{
	float f;

	*to = (struct number){.real = type.real};
	if (!type.real)
		return type.bytes && type.bytes <= 8 && whole_read(type, raw, &to->whole);
	if (type.bytes == sizeof(f)) {
		memcpy(&f, raw, sizeof(f));
		to->part = f;
	} else {
		memcpy(&to->part, raw, sizeof(to->part));
	}
	return true;
}

/* What C++ leaves undefined, a number too large for its new type, is not known. */
bool number_write(struct element_type type, const struct number *n, uint8_t *raw)
{
	int64_t whole = n->whole;
	float f;

	if (type.real) {
		double d = n->real ? n->part : (double)n->whole;

		f = (float)d;
		memcpy(raw, type.bytes == sizeof(f) ? (const void *)&f : (const void *)&d, type.bytes);
		return true;
	}
	if (n->real) {
		if (!(fabs(n->part) < 9e18) ||
		    (type.bytes < 8 && fabs(n->part) >= (double)((uint64_t)1 << (type.bytes * 8 - 1))))
			return false;
		whole = (int64_t)n->part;
	}
	memcpy(raw, &whole, type.bytes);
	return true;
}
