/* SPDX-License-Identifier: Apache-2.0
 * The verdict as text, WHAT: the kernel, the call that failed, what a core dump shows of the fault.
 */
#include <string.h>

#include "write/report_wrap.h"
#include "judge/verdict_priv.h"

#define KERNEL_NAME_MAX 160	/* C++ template names go on for pages */

/* As much of the driver's own line as is known. */
static void text_assert(struct wrap *w, const struct fault *f)
{
	char line[16] = "";

	if (f->line)
		snprintf(line, sizeof(line), ":%u", f->line);
	if (f->condition)
		wrap_printf(w, "Assertion `%s` failed%s%s%s%s%s", f->condition, f->file ? " at " : "",
			    f->file ? f->file : "", f->file ? line : "", f->function ? " in " : "",
			    f->function ? f->function : "");
	else if (f->file)
		wrap_printf(w, "an assertion failed at %s%s%s%s; its condition is %s", f->file, line,
			    f->function ? " in " : "", f->function ? f->function : "",
			    f->one_of ? f->one_of : "not in the dump");
}

static void text_fault(struct wrap *w, const struct fault *f)
{
	char did[96] = "", at[160] = "", more[64] = "";

	text_assert(w, f);
	if (f->access)
		snprintf(did, sizeof(did), " %s %u byte%s", strcmp(f->access, "read") == 0 ? "read" :
			 strcmp(f->access, "write") == 0 ? "wrote" : "updated", f->bytes, f->bytes == 1 ? "" : "s");
	if (f->access && f->address_known)
		snprintf(at, sizeof(at), " at 0x%llx", (unsigned long long)f->address);
	if (f->threads > 1)
		snprintf(more, sizeof(more), ", and %zu more threads", f->threads - 1);
	if (f->lane_known)
		wrap_printf(w, "block (%u,%u,%u) thread (%u,%u,%u)%s%s%s", f->block[0], f->block[1], f->block[2],
			    f->thread[0], f->thread[1], f->thread[2], did, at, more);
	if (f->pc)
		wrap_printf(w, "%s%sat %s  (%s)", f->instruction ? f->instruction : "", f->instruction ? " " : "",
			    f->pc, f->exception ? f->exception : f->what);
	else
		wrap_printf(w, "%s%s%s%s", f->what, f->exception ? " (" : "", f->exception ? f->exception : "",
			    f->exception ? ")" : "");
}

#define STANDING_SHOWN 6

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static void text_standing(struct wrap *w, const struct fault *f)
{
	size_t rest = f->elsewhere;

	wrap_printf(w, "running: %zu thread%s in %zu warp%s of %zu block%s, which stand%s", f->threads, plural(f->threads),
		    f->warps, plural(f->warps), f->blocks, plural(f->blocks), f->threads == 1 ? "s" : "");
	for (size_t i = 0; i < f->n_standing; i++) {
		if (i < STANDING_SHOWN)
			wrap_printf(w, "  at %s  (%zu thread%s)", f->standing[i].pc, f->standing[i].threads,
				    plural(f->standing[i].threads));
		else
			rest += f->standing[i].threads;
	}
	if (rest)
		wrap_printf(w, "  elsewhere  (%zu thread%s)", rest, plural(rest));
}

void text_what(struct wrap *w, const struct verdict *v)
{
	const struct kernel *k = &v->kernel;
	const char *name = k->name && strlen(k->name) <= KERNEL_NAME_MAX ? k->name : k->short_name;

	wrap_label(w, "WHAT");
	if (k->known && name)
		wrap_printf(w, "kernel %s", name);
	if (k->dims_known && v->alone)	/* a dump tells nothing else of the launch */
		wrap_printf(w, "%sgrid %ux%ux%u  block %ux%ux%u", name ? "" : "a kernel, ", k->grid[0], k->grid[1],
			    k->grid[2], k->block[0], k->block[1], k->block[2]);
	else if (k->dims_known)
		wrap_printf(w, "%sgrid %ux%ux%u  block %ux%ux%u  shared %u  stream 0x%llx",
			    name ? "" : "a kernel, ", k->grid[0], k->grid[1], k->grid[2], k->block[0],
			    k->block[1], k->block[2], k->shared, (unsigned long long)k->stream);
	if (v->fault.n_standing)
		text_standing(w, &v->fault);
	else if (v->fault.known)
		text_fault(w, &v->fault);
	else if (v->api && v->code)
		wrap_printf(w, "%s returned %u: %s (%s)", v->api, v->code, v->string ? v->string : "?",
			    v->name ? v->name : "no name");
	else if (v->code && v->string)
		wrap_printf(w, "CUDA answered %u: %s (%s)", v->code, v->string,
			    v->name ? v->name : "no name");
	else if (v->from_text)
		wrap_text(w, v->string && v->string[0] ? v->string : "the text has no error message; what else it tells is the evidence");
	else if (v->n_waiting)
		wrap_printf(w, "%s did not return", v->api ? v->api : "a call");
	else if (v->memory.known && v->source && !strcmp(v->source, "snapshot"))
		wrap_text(w, "PyTorch's allocator could not give what was asked for");
	else if (!k->known)
		wrap_text(w, v->api ? v->api : "an operation was refused before it reached the GPU");
	if (v->count > 1)
		wrap_printf(w, "seen %u times", v->count);
	w->label = NULL;
}
