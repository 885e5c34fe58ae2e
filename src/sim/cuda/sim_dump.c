/* SPDX-License-Identifier: Apache-2.0
 * GPU core dumps in the format of driver R580: device, context, modules, grid, multiprocessors.
 *
 * Of memory, only global memory is in it, if the flags request it: what the kernel's parameters point to. */
#include "sim/cuda/sim_dump.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DRIVER_MAJOR = 580, MEMORY_MAX = 1 << 20 };

static pthread_mutex_t dump_lock = PTHREAD_MUTEX_INITIALIZER;

uint32_t sim_dump_add(struct sim_dump *d, enum sim_table type, struct sim_place parent,
		      const void *data, size_t bytes, size_t stride, const char *name, ...)
{
	char full[128];
	struct sim_section section = { .name = full, .type = 0x80000000u + (uint32_t)type,
				      .flags = SHF_ALLOC,
				      .link = parent.table,
				      .info = parent.row,
				      .data = data,
				      .bytes = bytes,
				      .stride = stride};
	va_list args;

	va_start(args, name);
	vsnprintf(full, sizeof(full), name, args);
	va_end(args);
	return sim_elf_add(&d->elf, &section);
}

static uint64_t string_add(struct sim_dump *d, const char *text)
{
	return sim_buf_add(&d->strings, text, strlen(text) + 1);
}

static struct sim_place add_device(struct sim_dump *d)
{
	const struct sim_device *dev = &sim.devices[d->ctx->device];
	const struct sim_model *m = dev->model;
	char sm[16];
	struct sim_row_device row = {
		.id = (uint32_t)d->ctx->device, .pci_device = (uint32_t)dev->physical,
		.sms = (uint32_t)m->sms, .warps = (uint32_t)m->threads_sm / SIM_WARP,
		.lanes = SIM_WARP, .regs = 255, .preds = 8, .major = (uint32_t)m->major,
		.minor = (uint32_t)m->minor, .insn_bytes = 16, .uregs = 63, .upreds = 8,
		.barriers = 16,
	};

	snprintf(sm, sizeof(sm), "sm_%d%d", m->major, m->minor);
	row.sm_type = string_add(d, sm);
	row.name = string_add(d, m->name);
	row.type = string_add(d, "simulated");
	return (struct sim_place){ sim_dump_add(d, SIM_TAB_DEVICE, (struct sim_place){ 0, 0 }, &row,
						sizeof(row), sizeof(row), ".cudbg.devtbl"), 0 };
}

static struct sim_place add_context(struct sim_dump *d, struct sim_place device)
{
	struct sim_row_context row = {
		.id = (uintptr_t)d->ctx, .shared_base = 0x7a0100000000, .local_base = 0x7a0000000000,
		.global_base = 4096, .tid = (uint32_t)getpid(),
	};

	return (struct sim_place){
		sim_dump_add(d, SIM_TAB_CONTEXT, device, &row, sizeof(row), sizeof(row), ".cudbg.ctxtbl.dev0"), 0};
}

static const struct sim_module **modules_list(const struct sim_dump *d, size_t *count)
{
	char *base = atomic_load(&sim.modules.base);
	size_t used = atomic_load(&sim.modules.used);
	const struct sim_module **list = calloc(used + 1, sizeof(*list));

	*count = 0;
	for (size_t i = 0; list && i < used; i++) {
		struct sim_module *mod = (void *)(base + i * sim.modules.stride);

		if (atomic_load(&mod->head.alive) && (!mod->ctx || mod->ctx == d->ctx))
			list[(*count)++] = mod;
	}
	return list;
}

static void add_image(struct sim_dump *d, struct sim_place module, const struct sim_module *mod,
		      bool relocated)
{
	struct sim_elf image;

	if (sim_code_image(&image, mod, relocated))
		sim_dump_add(d, relocated ? SIM_TAB_RELF : SIM_TAB_ELF, module, image.body.data,
			     image.body.used, 0, ".cudbg.%s.dev0.ctx0",
			     relocated ? "relfimg" : "elfimg");
	sim_elf_free(&image);
}

static void add_modules(struct sim_dump *d, struct sim_place context, unsigned int flags)
{
	size_t count;
	const struct sim_module **list = modules_list(d, &count);
	uint64_t *handles = calloc(count + 1, sizeof(*handles));
	struct sim_place place = {0, 0};

	for (size_t i = 0; list && handles && i < count; i++)
		handles[i] = (uintptr_t)list[i];
	if (list && handles)
		place.table = sim_dump_add(d, SIM_TAB_MODULE, context, handles,
					   count * sizeof(*handles), sizeof(*handles),
					   ".cudbg.modtbl.dev0.ctx0");
	for (; list && handles && place.row < count; place.row++) {
		if (!(flags & SIM_DUMP_SKIP_ELF))
			add_image(d, place, list[place.row], false);
		add_image(d, place, list[place.row], true);
	}
	free(list);
	free(handles);
}

static void add_grid(struct sim_dump *d, struct sim_place device)
{
	const struct sim_op *op = d->op;
	uint32_t params_at = sim.devices[d->ctx->device].model->major >= 9 ? SIM_PARAMS_AT_SM90 : SIM_PARAMS_AT_SM80;
	struct sim_row_grid row = {
		.id = op->u.kernel.id, .context = (uintptr_t)d->ctx, .entry = d->entry,
		.function = (uintptr_t)op->u.kernel.func, .type = 2, .status = 2, .regs = d->regs,
		.module = (uintptr_t)op->u.kernel.func->module, .tid = (uint32_t)getpid(),
		.params_offset = op->param_bytes ? params_at : 0,
	};
	struct sim_row_bank bank = {.address = d->entry + 0x100000000, .bytes = params_at + (uint32_t)op->param_bytes};
	struct sim_place place = {0, 0};

	memcpy(row.grid, op->u.kernel.grid, sizeof(row.grid));
	memcpy(row.block, op->u.kernel.block, sizeof(row.block));
	place.table = sim_dump_add(d, SIM_TAB_GRID, device, &row, sizeof(row), sizeof(row),
				   ".cudbg.gridtbl.dev0");
	if (op->param_bytes)
		sim_dump_add(d, SIM_TAB_PARAM, place, op->params, op->param_bytes, 0,
			     ".cudbg.param.dev0.grid0");
	sim_dump_add(d, SIM_TAB_BANK, place, &bank, sizeof(bank), sizeof(bank),
		     ".cudbg.cbankstbl.dev0.grid0");
}

/* A trap leaves no exception. An assertion has no faulting instruction, and that of a planned
 * fault is unknown. */
static void fill_sm(const struct sim_dump *d, struct sim_row_sm *row)
{
	row->exception = (uint32_t)d->fault->exception;
	if (!row->exception || d->fault->insn == SIM_INSN_ASSERT || !d->fault->insn)
		return;
	row->pc_valid = 1;
	row->pc = d->entry + d->offset;
}

static void add_sms(struct sim_dump *d, struct sim_place device)
{
	uint32_t sms = (uint32_t)sim.devices[d->ctx->device].model->sms;
	uint32_t blocks = d->op && !d->fault->gone ? sim_dump_blocks(d) : 0;
	struct sim_row_sm *rows = calloc(sms, sizeof(*rows));

	if (!rows) {
		d->elf.body.failed = true;
		return;
	}
	for (uint32_t i = 0; i < sms; i++) {
		rows[i].id = i;
		if (i < blocks || (i == 0 && d->op && d->fault->gone))
			fill_sm(d, &rows[i]);
	}
	d->sm_table = sim_dump_add(d, SIM_TAB_SM, device, rows, sms * sizeof(*rows), sizeof(*rows),
				   ".cudbg.smtbl.dev0");
	free(rows);
	for (uint32_t i = 0; i < sms; i++) {
		if (i < blocks)
			sim_dump_block(d, i);
		else
			sim_dump_add(d, SIM_TAB_CTA, (struct sim_place){d->sm_table, i}, NULL, 0,
				     sizeof(struct sim_row_cta), ".cudbg.ctatbl.dev0.sm%u", i);
	}
}

/* A real dump has all of it; this is what the kernel can have read. */
static void add_memory(struct sim_dump *d)
{
	for (size_t at = 0; at + sizeof(sim_addr) <= d->op->param_bytes; at += sizeof(sim_addr)) {
		struct sim_section section = {
			.name = ".cudbg.global.0", .type = 0x80000000u + SIM_TAB_GLOBAL, .flags = SHF_ALLOC};
		sim_addr address;

		memcpy(&address, (const char *)d->op->params + at, sizeof(address));
		section.bytes = sim_mem_reach(d->ctx, address, MEMORY_MAX);
		section.address = address;
		section.data = (const void *)(uintptr_t)address;
		if (section.bytes)
			sim_elf_add(&d->elf, &section);
	}
}

static void add_end(struct sim_dump *d, unsigned int flags)
{
	struct sim_row_meta row = {
		.generator = string_add(d, "cuwhy-sim"), .driver = { DRIVER_MAJOR, 0 },
		.cuda = {(uint32_t)sim.config.driver / 1000, (uint32_t)sim.config.driver % 1000 / 10},
		.flags = flags, .time = (uint32_t)time(NULL),
	};
	struct sim_section strings = {.name = ".strtab", .type = SHT_STRTAB, .flags = SHF_ALLOC};

	sim_dump_add(d, SIM_TAB_META, (struct sim_place){0, 0}, &row, sizeof(row), 0, ".cudbg.meta");
	strings.data = d->strings.data;
	strings.bytes = d->strings.used;
	sim_elf_add(&d->elf, &strings);
}

static bool file_write(const char *path, const struct sim_buf *buf)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t at = 0;

	while (fd >= 0 && at < buf->used) {
		ssize_t wrote = write(fd, buf->data + at, buf->used - at);

		if (wrote <= 0)
			break;
		at += (size_t)wrote;
	}
	if (fd >= 0)
		close(fd);
	return fd >= 0 && at == buf->used;
}

static void dump_kernel(struct sim_dump *d)
{
	const struct sim_func *f = d->op->u.kernel.func;

	d->entry = sim_code_entry(f);
	d->offset = sim_code_offset(f->row, d->fault->insn);
	d->regs = f->regs < 16 ? 16 : (uint32_t)(f->regs + 7) / 8 * 8;
}

bool sim_dump_write(struct sim_ctx *ctx, const struct sim_op *op, const struct sim_fault *fault,
		    const struct sim_dump_plan *plan)
{
	struct sim_dump d = {.ctx = ctx, .op = op, .fault = fault};
	struct sim_place device;
	bool ok;

	pthread_mutex_lock(&dump_lock);
	sim_elf_start(&d.elf);
	sim_buf_add(&d.strings, "", 1);
	if (op)
		dump_kernel(&d);
	device = add_device(&d);
	add_modules(&d, add_context(&d, device), plan->flags);
	if (op && !fault->gone)
		add_grid(&d, device);
	add_sms(&d, device);
	if (op && !(plan->flags & SIM_DUMP_SKIP_GLOBAL))
		add_memory(&d);
	add_end(&d, plan->flags);
	ok = sim_elf_finish(&d.elf, ET_CORE, 0x33, 7, 0) && file_write(plan->path, &d.elf.body);
	sim_elf_free(&d.elf);
	sim_buf_free(&d.strings);
	pthread_mutex_unlock(&dump_lock);
	return ok;
}
