/* SPDX-License-Identifier: Apache-2.0
 * Reads the messages of CUDA, PyTorch, Triton and CuPy (see message.h).
 */
#include "case/message.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static const char *after(const char *text, const char *before)
{
	const char *s = strstr(text, before);

	return s ? s + strlen(before) : NULL;
}

/* Reads digits, thousands separators and a decimal point; returns what follows, NULL when no digit. */
static const char *read_number(const char *s, double *number)
{
	char digits[48];
	size_t n = 0;

	if (*s == '-')
		digits[n++] = *s++;
	while (n + 1 < sizeof(digits) &&
	       (isdigit((unsigned char)*s) || (*s == ',' && isdigit((unsigned char)s[1])) ||
		(*s == '.' && isdigit((unsigned char)s[1])))) {
		if (*s != ',')
			digits[n++] = *s;
		s++;
	}
	digits[n] = '\0';
	if (!n || !isdigit((unsigned char)digits[n - 1]))
		return NULL;
	*number = strtod(digits, NULL);
	return s;
}

bool message_number(const char *text, const char *before, double *number)
{
	const char *s = after(text, before);

	return s && read_number(s, number);
}

static bool read_bytes(const char *s, double *bytes)
{
	static const struct { const char *unit; int shift; } units[] = {
		{"bytes", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}, {"KB", 10}, {"MB", 20}, {"GB", 30},
	};

	s = s ? read_number(s, bytes) : NULL;
	if (s)	/* NumPy writes "186. GiB", XLA "16.00GiB" */
		s += *s == '.', s += *s == ' ';
	for (size_t i = 0; s && i < sizeof(units) / sizeof(units[0]); i++) {
		if (str_starts(s, units[i].unit)) {
			*bytes = ldexp(*bytes, units[i].shift);
			return true;
		}
	}
	return false;
}

bool message_bytes(const char *text, const char *before, double *bytes)
{
	return read_bytes(after(text, before), bytes);
}

bool message_bytes_before(const char *text, const char *behind, double *bytes)
{
	const char *s = strstr(text, behind);

	while (s && s > text && s[-1] != ';' && s[-1] != '(' && s[-1] != '\n')
		s--;
	while (s && *s == ' ')
		s++;
	return s && read_bytes(s, bytes);
}

static void set_if_unknown(struct casefile *f, enum fact_id id, double number)
{
	const char *by = fact_origin(f, id);

	/* what another input said stays, but is compared */
	if (!fact_known(f, id) || !by || !f->observer || strcmp(by, f->observer))
		fact_set_number(f, id, number);
}

static void copy_shape(struct casefile *f, enum fact_id id, const char *s, const char *end)
{
	fact_set_text(f, id, pool_copy(f->pool, s, (size_t)(end - s)));
}

/* "mat1 and mat2 shapes cannot be multiplied (10x10 and 5x10)" */
static void read_matrix_shapes(struct casefile *f, const char *text)
{
	const char *s = after(text, "shapes cannot be multiplied ("), *mid, *end, *x;
	double number;

	mid = s ? strstr(s, " and ") : NULL;
	end = mid ? strchr(mid, ')') : NULL;
	if (!end)
		return;
	copy_shape(f, FACT_shape_left, s, mid);
	copy_shape(f, FACT_shape_right, mid + 5, end);
	x = strrchr(fact_text(f, FACT_shape_left), 'x');
	if (x && read_number(x + 1, &number))
		fact_set_number(f, FACT_shape_left_inner, number);
	if (read_number(fact_text(f, FACT_shape_right), &number))
		fact_set_number(f, FACT_shape_right_inner, number);
}

/* "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1" */
static void read_tensor_sizes(struct casefile *f, const char *text)
{
	const char *a = after(text, "The size of tensor a ("), *b = after(text, "the size of tensor b (");
	const char *a_end = a ? strchr(a, ')') : NULL, *b_end = b ? strchr(b, ')') : NULL;

	if (!a_end || !b_end)
		return;
	copy_shape(f, FACT_shape_left, a, a_end);
	copy_shape(f, FACT_shape_right, b, b_end);
}

/* Up to 2.0: "(GPU 0; 7.92 GiB total capacity; 7.02 GiB already allocated; 21.50 MiB free; [… allowed; ]7.31 GiB reserved in
 * total by PyTorch)". Up to 1.3 the last is "297.42 MiB cached)", which is only what is reserved and not allocated. */
static void read_memory_old(struct casefile *f, const char *text)
{
	double n, allocated = 0;

	if (!strstr(text, "already allocated;"))
		return;
	if (message_bytes_before(text, " total capacity;", &n))
		set_if_unknown(f, FACT_oom_total, n);
	if (message_bytes_before(text, " already allocated;", &allocated))
		set_if_unknown(f, FACT_oom_torch_allocated, allocated);
	if (message_bytes_before(text, " free;", &n))
		set_if_unknown(f, FACT_oom_free, n);
	if (message_bytes_before(text, " reserved in total", &n))
		set_if_unknown(f, FACT_oom_torch_reserved, n);
	else if (message_bytes_before(text, " cached)", &n))
		set_if_unknown(f, FACT_oom_torch_reserved, allocated + n);
}

/* The backend cudaMallocAsync: "Allocation on device 0 would exceed allowed memory. (out of memory) Currently allocated : …
 * Requested : … Device limit : … Free (according to CUDA): …". */
static void read_memory_async(struct casefile *f, const char *text)
{
	static const struct { const char *before; enum fact_id id; } parts[] = {
		{ "Currently allocated", FACT_oom_torch_allocated }, { "Requested", FACT_oom_request },
		{ "Device limit", FACT_oom_total }, { "Free (according to CUDA)", FACT_oom_free },
	};
	double n;

	if (!strstr(text, "would exceed allowed memory"))
		return;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const char *s = after(text, parts[i].before);

		if (s && read_bytes(s + strspn(s, " :"), &n))
			set_if_unknown(f, parts[i].id, n);
	}
}

/* "is allocated by PyTorch, [with … allocated in private pools (e.g., CUDA Graphs), ]and 217.48 MiB is reserved by PyTorch but". */
static bool unallocated_bytes(const char *text, double *bytes)
{
	const char *s = strstr(text, " is reserved by PyTorch but"), *from = s;

	while (from && from > text && strncmp(from, "and ", 4) != 0)
		from--;
	return s && from > text && read_bytes(from + 4, bytes);
}

/* "Process 4711 has 10.00 GiB memory in use. Including non-PyTorch memory, this process has 3.00 GiB memory in use." */
static void read_processes(struct casefile *f, const char *text)
{
	double n, sum = 0, count = 0, most = 0;

	/* any other source knows better */
	if (!fact_true(f, FACT_text_is) || !message_bytes(text, ", this process has ", &n) || n > ldexp(1, 50))
		return;
	set_if_unknown(f, FACT_oom_live, n);
	for (const char *s = text; (s = after(s, "Process ")) != NULL;) {
		char *end;
		double pid = (double)strtoul(s, &end, 10);

		if (end == s || !str_starts(end, " has ") || !read_bytes(end + 5, &n) || n > ldexp(1, 50))
			continue;
		sum += n;
		count++;
		if (n > most) {
			most = n;
			fact_set_number(f, FACT_others_pid, pid);
			fact_set_number(f, FACT_others_most, n);
		}
	}
	fact_set_flag(f, FACT_others_known, true);
	fact_set_number(f, FACT_others_bytes, sum);
	fact_set_number(f, FACT_others_count, count);
}

static void read_memory(struct casefile *f, const char *text)
{
	static const char *const before[] = {
		"Tried to allocate ",
		"Out of memory allocating ",
		"you tried to allocate ",			/* PyTorch on the CPU */
		"Out of memory while trying to allocate ",	/* XLA */
		"Unable to allocate ",				/* NumPy */
		"ran out of memory trying to allocate ",	/* TensorFlow */
		"Cannot allocate ",				/* Paddle */
		"Requested amount of GPU memory (",		/* TensorRT */
	};
	double n;

	if (message_bytes(text, "is allocated by PyTorch, with ", &n))	/* in private pools */
		set_if_unknown(f, FACT_pool_said, n);
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		if (message_bytes(text, before[i], &n))
			set_if_unknown(f, FACT_oom_request, n);
	if (message_number(text, "requested buffer of size ", &n) || message_number(text, " buffer of size ", &n))	/* ONNX Runtime, ggml */
		set_if_unknown(f, FACT_oom_request, n);
	if (message_bytes(text, "available memory is only ", &n))
		set_if_unknown(f, FACT_oom_free, n);
	if (strstr(text, "Tried to allocate more than 1EB"))
		set_if_unknown(f, FACT_oom_request, ldexp(1, 60));
	if (message_bytes(text, "total capacity of ", &n) || message_bytes(text, "total capacty of ", &n))
		set_if_unknown(f, FACT_oom_total, n);
	if (message_bytes(text, " of which ", &n))
		set_if_unknown(f, FACT_oom_free, n);
	read_memory_old(f, text);
	read_memory_async(f, text);
	read_processes(f, text);
	if (message_bytes(text, "Of the allocated memory ", &n))
		set_if_unknown(f, FACT_oom_torch_allocated, n);
	if (unallocated_bytes(text, &n) && fact_known(f, FACT_oom_torch_allocated))
		set_if_unknown(f, FACT_oom_torch_reserved, n + fact_number(f, FACT_oom_torch_allocated, 0));
}

/* Triton refuses before any CUDA call, with the exception OutOfResources: as a text "out of resource: shared
 * memory, Required: N, Hardware limit: M", as its recorded arguments "N, M, shared memory". */
static void read_triton(struct casefile *f, const char *text)
{
	const char *s = strstr(text, "out of resource: shared memory");
	unsigned long n = 0, m = 0;
	double asked, limit;

	if (s && message_number(s, "Required: ", &asked) && message_number(s, "Hardware limit: ", &limit))
		;
	else if (sscanf(text, "%lu, %lu, shared memory", &n, &m) == 2 && strstr(text, ", shared memory"))
		asked = (double)n, limit = (double)m;
	else
		return;
	set_if_unknown(f, FACT_shared_asked, asked);
	set_if_unknown(f, FACT_shared_limit, limit);
	if (!fact_text(f, FACT_shared_by)[0])
		fact_set_text(f, FACT_shared_by, "triton");
}

static void set_broken(struct casefile *f, const char *dimension, double value, double limit)
{
	if (fact_known(f, FACT_launch_broken))
		return;
	fact_set_text(f, FACT_launch_broken, dimension);
	fact_set_number(f, FACT_launch_broken_value, value);
	fact_set_number(f, FACT_launch_broken_limit, limit);
	fact_set_text(f, FACT_launch_zero, "");
	fact_set_text(f, FACT_launch_negative_dim, "");
	fact_set_flag(f, FACT_limit_assumed, false);
}

static void set_zero(struct casefile *f, const char *dimension)
{
	if (fact_known(f, FACT_launch_zero))
		return;
	fact_set_text(f, FACT_launch_zero, dimension);
	fact_set_text(f, FACT_launch_broken, "");
	fact_set_text(f, FACT_launch_negative_dim, "");
}

/* The driver's log (580.159): "Grid Dimension Y of 70000 exceeds maximum value of 65535", "Grid Dimension
 * X must be nonzero", "Requested block size of 1056 threads exceeds device maximum 1024". */
static void read_driver_log(struct casefile *f, const char *text)
{
	char before[40];
	double value, limit;

	for (int axis = 0; axis < 3; axis++) {
		const char *name = (const char *[]){"grid x", "grid y", "grid z"}[axis];

		snprintf(before, sizeof(before), "Grid Dimension %c of ", 'X' + axis);
		if (message_number(text, before, &value) &&
		    message_number(strstr(text, before), "exceeds maximum value of ", &limit))
			set_broken(f, name, value, limit);
		snprintf(before, sizeof(before), "Grid Dimension %c must be nonzero", 'X' + axis);
		if (strstr(text, before))
			set_zero(f, name);
	}
	if (message_number(text, "Requested block size of ", &value) &&
	    message_number(text, "threads exceeds device maximum ", &limit))
		set_broken(f, "block threads", value, limit);
	if (strstr(text, "include one or more zero values"))
		set_zero(f, "block");
	if (message_number(text, "exceed occupancy limit for this kernel on this device of ", &limit))
		set_if_unknown(f, FACT_launch_resident, limit);
}

static void read_ordinal(struct casefile *f, const char *text)
{
	double n;

	if (message_number(text, "Invalid device number ", &n) ||
	    message_number(text, "deserialize object on CUDA device ", &n))
		set_if_unknown(f, FACT_ordinal_asked, n);
	if (message_number(text, "must be in the range of 0 to ", &n))
		set_if_unknown(f, FACT_device_count, n + 1);
	if (message_number(text, "torch.cuda.device_count() is ", &n))
		set_if_unknown(f, FACT_device_count, n);
}

void facts_from_message(struct casefile *f, const char *text)
{
	read_matrix_shapes(f, text);
	read_tensor_sizes(f, text);
	read_memory(f, text);
	read_triton(f, text);
	read_driver_log(f, text);
	read_ordinal(f, text);
}
