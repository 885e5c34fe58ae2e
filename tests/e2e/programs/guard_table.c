/* SPDX-License-Identifier: Apache-2.0
 * Stand-ins for PyTorch's libraries, as far as guard mode looks at them: an allocator object with a table of virtual functions, and the table of another
 * class with the same base, whose functions have names. Compiled three times: -DC10 (libc10.so), -DC10_CUDA, -DTORCH_CUDA.
 * With -DODD the allocator's answers have another form; with -DNAMELESS one function has no name.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SLOTS 24

#ifdef C10_CUDA
struct data_ptr { uint64_t data, deleter, context; int8_t type, index; };
struct stat { int64_t current, peak, allocated, freed; };
struct stream { uint64_t device, id; };

extern int cuMemAlloc_v2(uint64_t *, size_t);

static struct stat figures[30];
static uint64_t segment, used;
static int calls;

static void account(int at, int64_t by)
{
	for (int pool = 0; pool < 2; pool++)	/* all, and the small ones */
		figures[3 * at + pool].current += by;
}

static void native_delete(void *p)
{
	if (p) {
		account(0, -1);
		account(4, -3584);
	}
}

static uint64_t native_take(size_t size)
{
	uint64_t at;

	if (!size)
		return 0;
	if (!segment) {
		cuMemAlloc_v2(&segment, 2 << 20);
		account(5, 2 << 20);
	}
	account(0, 1);
	size = (size + 511) & ~511ul;
	account(4, (int64_t)size);
	at = segment + used;
	used += size;
	calls++;
	return at;
}

static struct data_ptr *allocate(struct data_ptr *out, void *self, size_t size)
{
	(void)self;
	memset(out, 0, sizeof(*out));
	out->data = native_take(size);
#ifdef ODD
	out->context = out->data + 1;
#else
	out->context = out->data;
#endif
	out->deleter = (uintptr_t)native_delete;
	out->type = 1;
	return out;
}

static void *raw_deleter(const void *self) { (void)self; return (void *)native_delete; }
static void *raw_alloc(void *self, size_t n) { (void)self; return (void *)native_take(n); }
static void *raw_alloc_with_stream(void *self, size_t n, uint64_t s) { (void)self, (void)s; return (void *)native_take(n); }
static void raw_delete(void *self, void *p) { (void)self; native_delete(p); }
static void nothing(void) { }
static void *base_allocation(void *self, void *p, size_t *n) { (void)self; *n = 0; return p; }

static struct stat *stats(struct stat *out, void *self, int8_t device)
{
	(void)self, (void)device;
	memcpy(out, figures, sizeof(figures));
	return out;
}

/* In the order of the other table; the first two words belong to the type. */
static const void *table[SLOTS + 2] = {
	NULL,	    NULL,    nothing,	      allocate, raw_deleter, raw_alloc, raw_alloc_with_stream,
	raw_delete, nothing, base_allocation, stats,	nothing,     nothing,	nothing,
	nothing,    nothing, nothing,	      nothing,	nothing};
static const void *object = table + 2;
void *_ZN3c104cuda20CUDACachingAllocator9allocatorE = &object;

struct stream _ZN3c104cuda20getCurrentCUDAStreamEa(int8_t device);
struct stream _ZN3c104cuda20getCurrentCUDAStreamEa(int8_t device) { return (struct stream){(uint64_t)device << 8 | 1, 0}; }
uint64_t _ZNK3c104cuda10CUDAStream6streamEv(const struct stream *s);
uint64_t _ZNK3c104cuda10CUDAStream6streamEv(const struct stream *s) { return s->id; }

/* What PyTorch's own code does. */
static const void *const *virtual(void) { return *(const void *const **)_ZN3c104cuda20CUDACachingAllocator9allocatorE; }

uint64_t tensor_new(size_t size, uint64_t *deleter);
uint64_t tensor_new(size_t size, uint64_t *deleter)
{
	struct data_ptr p[4];

	((struct data_ptr * (*)(struct data_ptr *, void *, size_t)) virtual()[1])(p, &object, size);
	*deleter = p->deleter;
	return p->data;
}

void tensor_free(uint64_t p, uint64_t deleter);
void tensor_free(uint64_t p, uint64_t deleter) { ((void (*)(void *))deleter)((void *)p); }

uint64_t raw_new(size_t size, uint64_t stream);
uint64_t raw_new(size_t size, uint64_t stream)
{
	return (uintptr_t)((void *(*)(void *, size_t, uint64_t)) virtual()[4])(&object, size, stream);
}

void raw_free(uint64_t p);
void raw_free(uint64_t p) { ((void (*)(void *, void *)) virtual()[5])(&object, (void *)p); }

/* 0 begins to put tensors into a pool, 1 ends it, 2 lets the pool go. */
void pool_call(int which, uint64_t id);
void pool_call(int which, uint64_t id)
{
	((void (*)(void *, int8_t, uint64_t, uint64_t, void *)) virtual()[10 + which])(&object, 0, id, 0, NULL);
}

int64_t bytes_now(void);
int64_t bytes_now(void)
{
	struct stat all[128];

	return ((struct stat * (*)(struct stat *, void *, int8_t)) virtual()[8])(all, &object, 0)[12].current;
}

int native_calls(void);
int native_calls(void) { return calls; }
#endif

#ifdef TORCH_CUDA
#define OTHER(name) _ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator##name
#define OTHER_CONST(name) _ZNK5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator##name
#define NAMES(X) \
	X(OTHER(8allocateEm)) \
	X(OTHER_CONST(11raw_deleterEv)) X(OTHER(9raw_allocEm)) X(OTHER(21raw_alloc_with_streamEmP11CUstream_st)) \
		X(OTHER(10raw_deleteEPv)) X(OTHER(12recordStreamERKN3c107DataPtrENS3_4cuda10CUDAStreamE)) \
			X(OTHER(17getBaseAllocationEPvPm)) X(OTHER(14getDeviceStatsEa)) X(OTHER(14resetPeakStatsEa)) \
				X(OTHER(19beginAllocateToPoolEaSt4pairIyyESt8functionIFbP11CUstream_stEE)) \
					X(OTHER(17endAllocateToPoolEaSt4pairIyyE)) X(OTHER(11releasePoolEaSt4pairIyyE)) \
						X(OTHER(10emptyCacheESt4pairIyyE)) X(OTHER(14shareIpcHandleEPv)) \
							X(OTHER(11memcpyAsyncEPviPKvimP11CUstream_stb))
#ifdef NAMELESS
#define VISIBLE __attribute__((visibility("hidden")))
#else
#define VISIBLE
#endif
#define X(name) VISIBLE void name(void); VISIBLE void name(void) { __asm__ volatile("" :: "r"(#name)); }
NAMES(X)
#undef X
static void first(void) { }
const void *_ZTVN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocatorE[SLOTS + 2] = {NULL, NULL, first,
#define X(name) name,
	NAMES(X)
#undef X
};
#endif

#ifdef C10
int c10_is_loaded;
#endif
