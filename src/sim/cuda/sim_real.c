/* SPDX-License-Identifier: Apache-2.0
 * Images of real code: fat binaries, cubins, PTX. Their kernels have the registers, shared memory and parameters that the compiler
 * gave them, are checked when they are launched, and do nothing.
 *
 * PyTorch registers hundreds of fat binaries with a hundred thousand kernels: loading one only chooses the entry for this GPU, and
 * unpacking waits until a kernel is asked for. */
#include "sim/cuda/sim_image.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "formats/gpu_code.h"
#include "sim/cuda/sim_unpack.h"

#define WRAPPER_MAGIC 0x466243b1u
#define UNPACKED_MAX  ((uint64_t)2 << 30)	/* no cubin is larger */
#define CODE_PAGE     ((size_t)2 << 20)		/* device memory for code is taken in pages of this size */
#define CODE_ALIGN    ((size_t)256)
/* Taken when the first kernel is loaded, beside its code. Measured on an H200 with R580 and PyTorch 2.11: 92 MiB, of 132
 * multiprocessors, whichever kernels a program uses. That it grows with their number is an assumption. */
#define CODE_PER_SM   ((size_t)714 << 10)

struct wrapper {		/* what the compiler puts into a program, in front of its fat binary */
	uint32_t magic, version;
	const void *data;
	const void *more;
};

struct variable {
	sim_addr at[SIM_DEVICES_MAX];		/* 0: not allocated yet */
	unsigned char epoch[SIM_DEVICES_MAX];
};

struct sim_real {
	struct bytes stored;	/* the chosen code as it is in the image */
	void *owned;		/* our copy of it, or NULL */
	enum fatbin_packing packing;
	size_t whole;		/* its size when unpacked */
	bool ptx;
	pthread_mutex_t lock;	/* for everything below */
	bool opened;
	int code;		/* why it cannot be used, or 0 */
	struct gpu_code contents;
	struct sim_func **func;		/* by kernel; NULL: nobody asked for it yet */
	struct variable *variable;	/* by variable */
};

static void run_nothing(const struct sim_op *op, struct sim_fault *fault)
{
	(void)op, (void)fault;
}

static const struct sim_kernel_row real_row = {.name = "", .mangled = "", .params = "", .code = "", .run = run_nothing};

static uint32_t magic_of(const void *image)
{
	uint32_t magic;

	memcpy(&magic, image, sizeof(magic));
	return magic;
}

static bool is_elf(const void *image)
{
	return memcmp(image, ELFMAG, SELFMAG) == 0;
}

static bool is_ptx(const void *image)
{
	const char *text = image;
	struct gpu_target t;

	text += strspn(text, " \t\r\n");
	return (*text == '/' || *text == '.') && gpu_ptx_target((struct bytes){image, strlen(image)}, &t);
}

bool sim_real_is(const void *image)
{
	/* the shortest texts are shorter than a magic number: no byte behind a zero is read */
	if (strnlen(image, 4) < 4)
		return false;
	return magic_of(image) == WRAPPER_MAGIC || magic_of(image) == FATBIN_MAGIC || is_elf(image) || is_ptx(image);
}

/* Remembers the code; the image may be gone after the call unless it is `kept`. */
static int code_store(struct sim_real *r, struct bytes code, bool kept)
{
	r->stored = code;
	if (kept)
		return 0;
	r->owned = malloc(code.len + 1);
	if (!r->owned)
		return SIM_OUT_OF_MEMORY;
	sim_keep(r->owned);
	memcpy(r->owned, code.data, code.len);
	r->stored.data = r->owned;
	return 0;
}

static bool entry_chosen(struct sim_choice *c, const struct sim_model *m, const struct fatbin_entry *e)
{
	if (!e->arch || e->arch > FATBIN_ARCH_MAX)
		return false;
	if (e->kind == FATBIN_SASS)
		return sim_choice_sass(c, m, (int)e->arch, e->suffix);
	return e->kind == FATBIN_PTX && sim_choice_ptx(c, m, (int)e->arch, e->suffix, e->ptx) && !c->sass;
}

static int fatbin_load(struct sim_module *mod, const struct sim_model *m, const void *image, bool kept)
{
	struct elf_source s = {-1, image, FATBIN_HEADER};
	struct sim_choice choice = {0};
	struct fatbin_entry e, best = {0};
	struct fatbin_binary b;
	struct sim_real *r = mod->real;
	int code;

	if (!fatbin_binary_at(&s, 0, s.len, &b) || b.size > UINT64_MAX - b.first)
		return SIM_INVALID_IMAGE;
	s.len = b.first + b.size;
	for (uint64_t at = b.first; s.len - at >= 8; at = e.next) {
		if (!fatbin_entry_at(&s, at, s.len, &e))
			return SIM_INVALID_IMAGE;
		if (entry_chosen(&choice, m, &e))
			best = e;
	}
	code = sim_choice_code(&choice);
	if (code)
		return code;
	if (best.whole > UNPACKED_MAX)
		return SIM_INVALID_IMAGE;
	r->packing = best.packing;
	r->whole = (size_t)best.whole;
	r->ptx = best.kind == FATBIN_PTX;
	mod->binary_version = r->ptx ? m->major * 10 + m->minor : (int)best.arch;
	mod->ptx_version = (int)best.arch;
	return code_store(r, (struct bytes){s.data + best.at, (size_t)best.len}, kept);
}

/* A cubin or PTX by itself: there is nothing to choose, but it may be for another GPU. */
static int plain_load(struct sim_module *mod, const struct sim_model *m, const void *image)
{
	bool elf = is_elf(image);
	struct bytes b = {image, elf ? gpu_cubin_size(image) : strlen(image)};
	struct sim_choice choice = {0};
	struct sim_real *r = mod->real;
	struct gpu_target t;
	int code;

	if (!b.len || !(elf ? gpu_cubin_target(b, &t) : gpu_ptx_target(b, &t)))
		return SIM_INVALID_IMAGE;
	if (elf)
		sim_choice_sass(&choice, m, t.arch, '\0');
	else
		sim_choice_ptx(&choice, m, t.arch, t.suffix, t.ptx);
	code = sim_choice_code(&choice);
	if (code)
		return code;
	r->packing = FATBIN_PLAIN;
	r->whole = b.len;
	r->ptx = !elf;
	mod->binary_version = elf ? t.arch : m->major * 10 + m->minor;
	mod->ptx_version = t.arch;
	return code_store(r, b, false);
}

int sim_real_load(struct sim_module *mod, const struct sim_model *m, const void *image, bool kept)
{
	struct sim_real *r = calloc(1, sizeof(*r));
	int code;

	if (!r)
		return SIM_OUT_OF_MEMORY;
	sim_keep(r);
	mod->real = r;
	pthread_mutex_init(&r->lock, NULL);
	if (magic_of(image) == WRAPPER_MAGIC) {
		const struct wrapper *w = image;

		/* it is part of the program, and so is what it points to */
		code = w->data && magic_of(w->data) == FATBIN_MAGIC ? fatbin_load(mod, m, w->data, true)
								    : SIM_INVALID_IMAGE;
	} else if (magic_of(image) == FATBIN_MAGIC) {
		code = fatbin_load(mod, m, image, kept);
	} else {
		code = plain_load(mod, m, image);
	}
	if (code)
		sim_real_free(mod);
	else
		atomic_store(&sim.real_code, true);
	return code;
}

void sim_real_free(struct sim_module *mod)
{
	struct sim_real *r = mod->real;

	if (!r)
		return;
	gpu_code_release(&r->contents);
	free(r->func);
	free(r->variable);
	free(r->owned);
	free(r);
	mod->real = NULL;
}

static int code_of_errno(int error)
{
	return error == -ENOMEM ? SIM_OUT_OF_MEMORY : error ? SIM_INVALID_IMAGE : 0;
}

static int contents_read(struct sim_real *r, struct bytes code)
{
	return code_of_errno(r->ptx ? gpu_code_from_ptx(&r->contents, code) : gpu_code_from_cubin(&r->contents, code));
}

/* PTX in a fat binary may end with zeros. */
static struct bytes text_trimmed(struct bytes b)
{
	while (b.len && !b.data[b.len - 1])
		b.len--;
	return b;
}

static int contents_open(struct sim_real *r)
{
	uint8_t *whole = NULL;
	int code = 0;

	if (r->packing == FATBIN_PLAIN) {
		code = contents_read(r, r->ptx ? text_trimmed(r->stored) : r->stored);
	} else {
		struct bytes b = {whole = malloc(r->whole + 1), r->whole};

		if (!whole)
			return SIM_OUT_OF_MEMORY;
		if (!sim_unpack(r->packing, r->stored, whole, r->whole))
			code = SIM_INVALID_IMAGE;
		if (!code)
			code = contents_read(r, r->ptx ? text_trimmed(b) : b);
		free(whole);
	}
	if (code)
		return code;
	r->func = calloc(r->contents.kernels + 1, sizeof(struct sim_func *));
	r->variable = calloc(r->contents.variables + 1, sizeof(*r->variable));
	sim_keep(r->contents.kernel);
	sim_keep(r->contents.variable);
	sim_keep(r->contents.param);
	sim_keep(r->contents.names);
	sim_keep(r->contents.init);
	sim_keep(r->func);
	sim_keep(r->variable);
	return r->func && r->variable ? 0 : SIM_OUT_OF_MEMORY;
}

/* With the lock held. */
static int real_open(struct sim_real *r)
{
	if (!r->opened) {
		r->opened = true;
		r->code = contents_open(r);
		if (r->code == SIM_INVALID_IMAGE)
			sim_log("The code of this module is damaged or packed in an unknown way");
	}
	return r->code;
}

static struct sim_func *func_make(struct sim_module *mod, const struct gpu_kernel *k)
{
	struct sim_func *f = sim_func_new(&real_row);

	if (!f)
		return NULL;
	free(f->name);
	f->name = (char *)(uintptr_t)k->name;
	f->real = k;
	f->module = mod;
	f->regs = (int)k->regs;
	f->shared = (int)k->shared;
	f->bounds = (int)k->bounds;
	f->param_count = k->n_params;
	f->param_bytes = k->param_bytes;
	memcpy(f->cluster_fixed, k->cluster, sizeof(f->cluster_fixed));
	atomic_store(&f->dynamic_max, SIM_SHARED_DEFAULT > f->shared ? SIM_SHARED_DEFAULT - f->shared : 0);
	f->threads = sim_func_threads(f);
	f->next = mod->funcs;
	mod->funcs = f;
	atomic_store(&f->head.alive, 1);
	return f;
}

static struct sim_func *func_of(struct sim_module *mod, const struct gpu_kernel *k)
{
	struct sim_func **slot = &mod->real->func[k - mod->real->contents.kernel];

	if (!*slot)
		*slot = func_make(mod, k);
	return *slot;
}

struct sim_func *sim_real_find(struct sim_module *mod, const char *name, int *code)
{
	struct sim_real *r = mod->real;
	const struct gpu_kernel *k = NULL;
	struct sim_func *f = NULL;

	pthread_mutex_lock(&r->lock);
	*code = real_open(r);
	if (!*code) {
		k = gpu_code_kernel(&r->contents, name);
		f = k ? func_of(mod, k) : NULL;
		*code = !k ? SIM_NOT_FOUND : !f ? SIM_OUT_OF_MEMORY : 0;
	}
	pthread_mutex_unlock(&r->lock);
	return f;
}

int sim_real_find_all(struct sim_module *mod)
{
	struct sim_real *r = mod->real;
	int code;

	pthread_mutex_lock(&r->lock);
	code = real_open(r);
	for (size_t i = 0; !code && i < r->contents.kernels; i++)
		if (!func_of(mod, &r->contents.kernel[i]))
			code = SIM_OUT_OF_MEMORY;
	pthread_mutex_unlock(&r->lock);
	return code;
}

int sim_real_count(struct sim_module *mod, unsigned int *count)
{
	struct sim_real *r = mod->real;
	int code;

	pthread_mutex_lock(&r->lock);
	code = real_open(r);
	*count = code ? 0 : (unsigned int)r->contents.kernels;
	pthread_mutex_unlock(&r->lock);
	return code;
}

/* Where a parameter is; SIZE_MAX: there is none. */
size_t sim_real_param(const struct sim_func *f, size_t index, size_t *bytes)
{
	const struct gpu_param *p;

	if (index >= f->real->n_params)
		return SIZE_MAX;
	p = &f->module->real->contents.param[f->real->param + index];
	*bytes = p->size;
	return p->offset;
}

/* Lazy loading brings kernel by kernel; the driver's own share comes with the first. Needs sim_mem_lock. */
static int code_take(struct sim_device *dev, const struct sim_func *f)
{
	size_t code = dev->code ? dev->code : CODE_PER_SM * (size_t)dev->model->sms;
	size_t pages;

	code += ((size_t)f->real->code + CODE_ALIGN - 1) & ~(CODE_ALIGN - 1);
	pages = (code + CODE_PAGE - 1) & ~(CODE_PAGE - 1);
	if (pages > dev->code_charged) {
		if (sim_mem_charge_locked(dev, pages - dev->code_charged))
			return SIM_OUT_OF_MEMORY;
		dev->code_charged = pages;
	}
	dev->code = code;
	return 0;
}

int sim_func_load(struct sim_func *f, int device)
{
	struct sim_device *dev = &sim.devices[device];
	int code = 0;

	if (!f->real)
		return 0;
	pthread_mutex_lock(&sim_mem_lock);
	if (atomic_load(&f->loaded[device]) != dev->epoch) {
		code = code_take(dev, f);
		if (!code)
			atomic_store(&f->loaded[device], dev->epoch);
	}
	pthread_mutex_unlock(&sim_mem_lock);
	return code;
}

void sim_code_unload(struct sim_device *dev)
{
	sim_mem_uncharge_locked(dev, dev->code_charged);
	dev->code = dev->code_charged = 0;
	dev->epoch = dev->epoch == UCHAR_MAX ? 1 : (unsigned char)(dev->epoch + 1);
}

static int variable_alloc(const struct gpu_variable *v, struct variable *own, int device)
{
	sim_addr at = 0;
	int code = v->managed ? sim_cuMemAllocManaged(&at, v->size, 1) : sim_mem_alloc(&at, v->size, NULL);

	if (code)
		return code;
	if (v->init.data)
		memcpy((void *)(uintptr_t)at, v->init.data, v->init.len);
	own->at[device] = at;
	own->epoch[device] = sim.devices[device].epoch;
	return 0;
}

int sim_real_variable(struct sim_module *mod, int device, const char *name, bool managed, sim_addr *address, size_t *bytes)
{
	struct sim_real *r = mod->real;
	const struct gpu_variable *v = NULL;
	struct variable *own;
	int code;

	pthread_mutex_lock(&r->lock);
	code = real_open(r);
	if (!code)
		v = gpu_code_variable(&r->contents, name);
	if (!code && (!v || (managed && !v->managed)))
		code = SIM_NOT_FOUND;
	if (!code) {
		own = &r->variable[v - r->contents.variable];
		if (!own->at[device] || own->epoch[device] != sim.devices[device].epoch)
			code = variable_alloc(v, own, device);
		if (!code && address)
			*address = own->at[device];
		if (!code && bytes)
			*bytes = (size_t)v->size;
	}
	pthread_mutex_unlock(&r->lock);
	return code;
}
