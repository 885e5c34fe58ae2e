/* SPDX-License-Identifier: Apache-2.0
 * Every GPU of a machine and who holds it, as a table (see memory.h).
 */
#include <limits.h>
#include <stdlib.h>

#include "base/private.h"
#include "probe/usage.h"
#include "base/format.h"
#include "base/str.h"
#include "show/memory.h"

static const char *usage_bytes_text(char *buf, size_t size, uint64_t bytes)
{
	return bytes == USAGE_UNKNOWN ? "unknown" : format_bytes(buf, size, (double)bytes);
}

static void print_card(FILE *out, const struct gpu_card *c)
{
	char used[32], total[32], unused[32], reserve[32];

	fprintf(out, "GPU %u  %s%s%s%s\n", c->index, c->name[0] ? c->name : "(no name)", str_if(c->pci[0], "  "),
		c->pci, str_if(c->mig, "  (MIG: divided into instances)"));
	if (c->total == USAGE_UNKNOWN) {
		fputs("  its memory could not be queried\n", out);
		return;
	}
	fprintf(out, "  used %s of %s, free %s, ", usage_bytes_text(used, sizeof(used), c->used),
		usage_bytes_text(total, sizeof(total), c->total), usage_bytes_text(unused, sizeof(unused), c->free));
	if (c->reserved == USAGE_UNKNOWN)
		fputs("the driver's reserve is part of what is used\n", out);
	else
		fprintf(out, "driver's reserve %s\n", usage_bytes_text(reserve, sizeof(reserve), c->reserved));
}

static const char *holder_kind_text(uint32_t kind)
{
	if ((kind & HOLDER_GRAPHICS) && (kind & (HOLDER_COMPUTE | HOLDER_MPS)))
		return "both";
	return kind & HOLDER_MPS ? "mps" : kind & HOLDER_GRAPHICS ? "graphics" : "compute";
}

#define COMMAND_COLUMN 34

static int command_room(int width)
{
	if (width <= 0)
		return INT_MAX;
	return width > COMMAND_COLUMN + 20 ? width - COMMAND_COLUMN : 20;
}

static void print_holder(FILE *out, const struct gpu_holder *h, int width)
{
	char *command = private_shown(h->command[0] ? h->command : "(its command cannot be seen)");
	int room = command_room(width);
	char bytes[32];

	fprintf(out, "  %10s %9u  %-8s  ",
		h->bytes == USAGE_UNKNOWN ? "?" : usage_bytes_text(bytes, sizeof(bytes), h->bytes), h->pid,
		holder_kind_text(h->kind));
	switch (h->state) {
	case HOLDER_OUTSIDE:
		fputs("(a process outside this container)\n", out);
		break;
	case HOLDER_GONE:
		fputs("(this process has ended)\n", out);
		break;
	case HOLDER_ZOMBIE:
		fprintf(out, "%.*s (ended, but its parent has not collected it)\n", room, command);
		break;
	case HOLDER_UNKNOWN:
		fputs("(cuwhy cannot tell which process this is)\n", out);
		break;
	default:
		fprintf(out, "%.*s\n", room, command);
	}
	free(command);
}

/* One line for everything that has no owner with a number. */
static void print_unattributed(FILE *out, const struct gpu_state *g)
{
	uint64_t rest = usage_unattributed(g);
	bool hidden = !g->holders_known;
	char bytes[32];
	size_t i;

	for (i = 0; i < g->n; i++)
		hidden |= g->holder[i].bytes == USAGE_UNKNOWN;
	if (rest != USAGE_UNKNOWN && rest > 0)
		fprintf(out, "  %10s %9s  %-8s  %s\n", usage_bytes_text(bytes, sizeof(bytes), rest), "-", "",
			hidden ? "the driver does not say how much of this each process uses"
			       : "used by no process that the driver lists");
	else if (g->n == 0)
		fprintf(out, "  %s\n",
			g->holders_known ? "no process uses it" : "the driver does not list its processes");
}

void usage_print(FILE *out, const struct gpu_usage *u, int width)
{
	const struct gpu_state *g;
	size_t i, k;

	for (i = 0; i < u->n; i++) {
		g = &u->gpu[i];
		if (i)
			fputc('\n', out);
		print_card(out, &g->card);
		if (g->n)
			fprintf(out, "  %10s %9s  %-8s  %s\n", "memory", "pid", "kind", "command");
		for (k = 0; k < g->n; k++)
			print_holder(out, &g->holder[k], width);
		print_unattributed(out, g);
	}
}
