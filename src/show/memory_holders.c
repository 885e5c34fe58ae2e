/* SPDX-License-Identifier: Apache-2.0
 * See memory_holders.h.
 */
#include "show/memory_holders.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/json.h"
#include "base/private.h"
#include "base/str.h"
#include "case/case.h"
#include "find/failure/observe.h"
#include "find/memory/holders.h"
#include "read/recording/trace.h"
#include "show/report_json.h"

#define VIEWS	4u	/* so much more is kept than tensors have elements in */

static const struct { const char *what, *words; } unheld_words[] = {
	{"backward", "allocated in backward: temporaries, or gradients on their way"},
	{"gradients", "gradients"},
	{"cuda-graph", "allocated during the capture of a CUDA graph"},
	{"workspace", "workspaces of libraries"},
};

static void print_holder(FILE *out, const struct casefile *c, const struct holder_seen *h)
{
	char size[32], part[32];
	const char *named = holder_words(c, h);
	size_t n = strlen(named);

	fprintf(out, "  %10s  %.*s: %u tensor%s", format_bytes(size, sizeof(size), (double)h->bytes),
		(int)(n && named[n - 1] == ',' ? n - 1 : n), named, h->tensors, h->tensors == 1 ? "" : "s");
	if (h->graph > h->gradients && h->graph - h->gradients >= h->bytes / 20)
		fprintf(out, ", %s by autograd graphs",
			format_bytes(part, sizeof(part), (double)(h->graph - h->gradients)));
	if (h->gradients >= h->bytes / 20 && h->gradients)
		fprintf(out, ", %s gradients", format_bytes(part, sizeof(part), (double)h->gradients));
	if (h->made.file)
		fprintf(out, "; allocated at %s:%u", h->made.shown, h->made.number);
	putc('\n', out);
	if (h->used && h->used < h->bytes / VIEWS)
		fprintf(out, "              for %s that tensors have elements in: views keep all of the tensor that they were taken from\n",
			format_bytes(part, sizeof(part), (double)h->used));
}

static void print_unheld(FILE *out, const struct casefile *c)
{
	char size[32];

	fprintf(out, "  %10s  in %" PRIu64 " block%s to which no Python object leads%s\n",
		format_bytes(size, sizeof(size), (double)c->unheld_bytes), c->unheld_blocks,
		c->unheld_blocks == 1 ? "" : "s", c->holders_whole ? "" : ", as far as it was looked");
	for (size_t i = 0; i < c->n_unheld; i++) {
		const struct unheld_seen *u = &c->unheld[i];
		const char *words = "";

		for (size_t k = 0; k < sizeof(unheld_words) / sizeof(unheld_words[0]); k++)
			if (!strcmp(unheld_words[k].what, u->what))
				words = unheld_words[k].words;
		if (!*words && !u->made.file)
			continue;
		fprintf(out, "              %s %s", format_bytes(size, sizeof(size), (double)u->bytes), words);
		if (u->made.file)
			fprintf(out, "%s at %s:%u", *words ? "," : "allocated", u->made.shown, u->made.number);
		putc('\n', out);
	}
}

void memory_holders_print(FILE *out, const struct memory_holders *m)
{
	const struct cw_header *h = trace_header(m->trace);
	const struct holders *f = m->found;
	char *command = private_shown(h->cmdline[0] ? h->cmdline : h->exe), size[32];

	str_make_line(command);
	fprintf(out, "process %d: %s\n  %10s  in %" PRIu64 " blocks of PyTorch's\n", (int)m->pid, command,
		format_bytes(size, sizeof(size), (double)f->live_bytes), f->live_blocks);
	free(command);
	if (f->why)
		fprintf(out, "  who keeps them is not known: %s\n", f->why);
	for (size_t i = 0; i < m->c->n_holders; i++)
		print_holder(out, m->c, &m->c->holders[i]);
	if (!f->why)
		print_unheld(out, m->c);
	fprintf(out, "%" PRIu64 " objects in %.1f s%s%s; the process was stopped for %.1f ms\n", f->objects,
		(double)m->took_ns / 1e9, f->whole ? "" : ", not all that there are",
		f->changed ? "; what changed meanwhile is left out" : "", (double)f->stop_ns / 1e6);
}

json_t *memory_holders_json(const struct memory_holders *m)
{
	const struct holders *f = m->found;

	return JSON_OF(J_INT("schema", 1), J_INT("pid", m->pid), J_INT("bytes", f->live_bytes),
		       J_INT("blocks", f->live_blocks), J_VALUE("holders", holders_json(m->c)),
		       J_VALUE("unheld", f->why ? json_null() : unheld_json(m->c)), J_TEXT("why_not", f->why),
		       J_INT("objects", f->objects), J_INT("changed", f->changed),

		       J_VALUE("seconds", json_real((double)m->took_ns / 1e9)),
		       J_VALUE("stopped_ms", json_real((double)f->stop_ns / 1e6)));
}
