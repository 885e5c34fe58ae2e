/* SPDX-License-Identifier: Apache-2.0
 * Plans: made, given a stream and a work area, and executed.
 */
#include "sim/cufft/cufft.h"

#include <pthread.h>
#include <stdlib.h>

struct plan {
	bool used;		/* this slot has a handle */
	bool made;		/* cufftXtMakePlanMany succeeded */
	bool allocates;		/* cuFFT takes the work area itself; the default */
	struct fft_shape shape;
	struct sim_stream *stream;
	size_t work_bytes;
	sim_addr own_work;	/* taken by cuFFT */
	void *given_work;	/* set by the program */
};

/* Handles are small integers, and one that was destroyed is refused. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct plan **plans;
static int plan_count;

static struct plan *find_plan(int handle)
{
	struct plan *p = NULL;

	pthread_mutex_lock(&lock);
	if (handle >= 0 && handle < plan_count && plans[handle]->used)
		p = plans[handle];
	pthread_mutex_unlock(&lock);
	return p;
}

/* A slot that is free, or a new one; -1 without memory. Called with the lock held. */
static int free_slot(void)
{
	struct plan **grown;

	for (int i = 0; i < plan_count; i++)
		if (!plans[i]->used)
			return i;
	grown = realloc(plans, ((size_t)plan_count + 1) * sizeof(*plans));
	if (!grown)
		return -1;
	plans = grown;
	plans[plan_count] = calloc(1, sizeof(**plans));
	return plans[plan_count] ? plan_count++ : -1;
}

STANDIN(int, cufftCreate, (int *handle))
{
	int slot;

	if (!handle)
		return FFT_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	slot = free_slot();
	if (slot >= 0)
		*plans[slot] = (struct plan){.used = true, .allocates = true};
	pthread_mutex_unlock(&lock);
	*handle = slot;
	return slot < 0 ? FFT_ALLOC_FAILED : 0;
}

static void release_work(struct plan *p)
{
	if (p->own_work)
		cuMemFree_v2(p->own_work);
	p->own_work = 0;
}

STANDIN(int, cufftDestroy, (int handle))
{
	struct plan *p = find_plan(handle);

	if (!p)
		return FFT_INVALID_PLAN;
	release_work(p);
	pthread_mutex_lock(&lock);
	*p = (struct plan){0};
	pthread_mutex_unlock(&lock);
	return 0;
}

STANDIN(int, cufftSetAutoAllocation, (int handle, int allocates))
{
	struct plan *p = find_plan(handle);

	if (!p)
		return FFT_INVALID_PLAN;
	p->allocates = allocates != 0;
	return 0;
}

STANDIN(int, cufftSetStream, (int handle, struct sim_stream *stream))
{
	struct plan *p = find_plan(handle);

	if (!p)
		return FFT_INVALID_PLAN;
	p->stream = stream;
	return 0;
}

STANDIN(int, cufftSetWorkArea, (int handle, void *area))
{
	struct plan *p = find_plan(handle);

	if (!p)
		return FFT_INVALID_PLAN;
	release_work(p);
	p->given_work = area;
	return 0;
}

/* Types of the transform: cudaDataType of the real and the complex numbers, bytes of a complex one, oldest GPU. */
static const struct precision {
	int real, complex;
	size_t complex_bytes;
	int needs;		/* compute capability, times ten */
	bool powers_of_two;	/* only such lengths */
} precisions[] = {
	{.real = 0, .complex = 4, .complex_bytes = 8},						/* float */
	{.real = 1, .complex = 5, .complex_bytes = 16},						/* double */
	{.real = 2, .complex = 6, .complex_bytes = 4, .needs = 53, .powers_of_two = true},	/* half */
	{.real = 14, .complex = 15, .complex_bytes = 4, .needs = 80, .powers_of_two = true},	/* bfloat16 */
};

static const struct precision *find_precision(int execution)
{
	for (size_t i = 0; i < sizeof(precisions) / sizeof(precisions[0]); i++)
		if (execution == precisions[i].real || execution == precisions[i].complex)
			return &precisions[i];
	return NULL;
}

static int check_types(const struct precision *p, int in, int out, enum fft_kind *kind)
{
	if (in == p->complex && out == p->complex)
		*kind = FFT_C2C;
	else if (in == p->real && out == p->complex)
		*kind = FFT_R2C;
	else if (in == p->complex && out == p->real)
		*kind = FFT_C2R;
	else
		return FFT_INVALID_TYPE;
	return 0;
}

static int check_gpu(const struct precision *p)
{
	int device, major, minor;

	if (!p->needs)
		return 0;
	if (cuCtxGetDevice(&device) || cuDeviceComputeCapability(&major, &minor, device))
		return FFT_INTERNAL_ERROR;
	return major * 10 + minor >= p->needs ? 0 : FFT_NOT_SUPPORTED;
}

static int check_lengths(const struct precision *p, int rank, const long long *n, long long batch)
{
	if (rank < 1 || rank > FFT_RANK_MAX || batch < 1)
		return FFT_INVALID_SIZE;
	for (int i = 0; i < rank; i++) {
		if (n[i] < 1)
			return FFT_INVALID_SIZE;
		if (p->powers_of_two && n[i] & (n[i] - 1))
			return FFT_NOT_SUPPORTED;
	}
	return 0;
}

static int take_work(struct plan *p)
{
	release_work(p);
	if (!p->allocates || p->work_bytes == 0)
		return 0;
	return cuMemAlloc_v2(&p->own_work, p->work_bytes) ? FFT_ALLOC_FAILED : 0;
}

/* The strides of an embedding: without one they are ignored. */
struct layout {
	const long long *embed;
	long long stride, distance;
};

static int check_layout(const struct layout *l, int rank)
{
	if (!l->embed)
		return 0;
	if (l->stride < 1 || l->distance < 1)
		return FFT_INVALID_VALUE;
	for (int i = 1; i < rank; i++)
		if (l->embed[i] < 1)
			return FFT_INVALID_VALUE;
	return 0;
}

STANDIN(int, cufftXtMakePlanMany,
	(int handle, int rank, long long *n, long long *in_embed, long long in_stride, long long in_distance,
	 int in_type, long long *out_embed, long long out_stride, long long out_distance, int out_type, long long batch,
	 size_t *work_bytes, int execution))
{
	struct layout in = {in_embed, in_stride, in_distance}, out = {out_embed, out_stride, out_distance};
	const struct precision *precision = find_precision(execution);
	struct plan *p = find_plan(handle);
	struct fft_shape shape = {.rank = rank, .batch = (size_t)batch};
	int code;

	if (!p || p->made)
		return FFT_INVALID_PLAN;
	if (!n || !work_bytes)
		return FFT_INVALID_VALUE;
	if (!precision)
		return FFT_INVALID_TYPE;
	if ((code = check_types(precision, in_type, out_type, &shape.kind)) || (code = check_gpu(precision)) ||
	    (code = check_lengths(precision, rank, n, batch)) || (code = check_layout(&in, rank)) ||
	    (code = check_layout(&out, rank)))
		return code;
	for (int i = 0; i < rank; i++)
		shape.length[i] = (size_t)n[i];
	shape.complex_bytes = precision->complex_bytes;
	p->shape = shape;
	*work_bytes = p->work_bytes = fft_work_bytes(&shape);
	code = take_work(p);
	p->made = code == 0;
	return code;
}

STANDIN_KERNEL(kernel_c2c, "cufft_c2c");
STANDIN_KERNEL(kernel_r2c, "cufft_r2c");
STANDIN_KERNEL(kernel_c2r, "cufft_c2r");

STANDIN(int, cufftXtExec, (int handle, void *input, void *output, int direction))
{
	static struct standin_kernel *const kernels[] = {
		[FFT_C2C] = &kernel_c2c, [FFT_R2C] = &kernel_r2c, [FFT_C2R] = &kernel_c2r};
	struct plan *p = find_plan(handle);

	if (!p || !p->made)
		return FFT_INVALID_PLAN;
	if (!input || !output)
		return FFT_INVALID_VALUE;
	/* forward or inverse; the types of the others decide it */
	if (p->shape.kind == FFT_C2C && direction != -1 && direction != 1)
		return FFT_INVALID_VALUE;
	if (p->work_bytes && !p->own_work && !p->given_work)
		return FFT_NO_WORKSPACE;
	return standin_launch(kernels[p->shape.kind], p->stream) ? FFT_EXEC_FAILED : 0;
}
