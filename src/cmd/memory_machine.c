/* SPDX-License-Identifier: Apache-2.0
 * Every GPU of this machine and who holds it (see memory_machine.h).
 */
#include "cmd/memory_machine.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/progress.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "input/recording/usage_json.h"
#include "probe/probe.h"
#include "rules/template.h"
#include "base/banned.h"

static const char *size_text(char *buf, size_t size, uint64_t bytes)
{
	return bytes == USAGE_UNKNOWN ? "unknown" : format_bytes(buf, size, (double)bytes);
}

static void print_card(FILE *out, const struct gpu_card *c)
{
	char used[32], total[32], unused[32], reserve[32];

	fprintf(out, "GPU %u  %s%s%s%s\n", c->index, c->name[0] ? c->name : "(no name)", c->pci[0] ? "  " : "", c->pci,
		c->mig ? "  (MIG: divided into instances)" : "");
	if (c->total == USAGE_UNKNOWN) {
		fputs("  its memory could not be asked for\n", out);
		return;
	}
	fprintf(out, "  used %s of %s, free %s, ", size_text(used, sizeof(used), c->used),
		size_text(total, sizeof(total), c->total), size_text(unused, sizeof(unused), c->free));
	if (c->reserved == USAGE_UNKNOWN)
		fputs("the driver's reserve is part of what is used\n", out);
	else
		fprintf(out, "driver's reserve %s\n", size_text(reserve, sizeof(reserve), c->reserved));
}

static const char *kind_text(uint32_t kind)
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
	const char *command = h->command[0] ? h->command : "(its command cannot be seen)";
	int room = command_room(width);
	char bytes[32];

	fprintf(out, "  %10s %9u  %-8s  ", h->bytes == USAGE_UNKNOWN ? "?" : size_text(bytes, sizeof(bytes), h->bytes),
		h->pid, kind_text(h->kind));
	switch (h->state) {
	case HOLDER_OUTSIDE:
		fputs("(a process outside this container)\n", out);
		break;
	case HOLDER_GONE:
		fputs("(this process has ended)\n", out);
		break;
	case HOLDER_ZOMBIE:
		fprintf(out, "%.*s (ended, its parent has not noticed)\n", room, command);
		break;
	case HOLDER_UNKNOWN:
		fputs("(it cannot be told who this is)\n", out);
		break;
	default:
		fprintf(out, "%.*s\n", room, command);
	}
}

/* One line for everything that has no owner with a number. */
static void print_rest(FILE *out, const struct gpu_state *g)
{
	uint64_t rest = usage_unattributed(g);
	bool hidden = !g->holders_known;
	char bytes[32];
	size_t i;

	for (i = 0; i < g->n; i++)
		hidden |= g->holder[i].bytes == USAGE_UNKNOWN;
	if (rest != USAGE_UNKNOWN && rest > 0)
		fprintf(out, "  %10s %9s  %-8s  %s\n", size_text(bytes, sizeof(bytes), rest), "-", "",
			hidden ? "the driver does not say how much of this is whose"
			       : "not of a process that the driver lists");
	else if (g->n == 0)
		fprintf(out, "  %s\n", g->holders_known ? "nobody uses it" : "the driver does not list its processes");
}

void memory_print_usage(FILE *out, const struct gpu_usage *u, int width)
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
		print_rest(out, g);
	}
}

static int no_answer(const struct gpu_usage *u, struct err *e)
{
	switch (u->trouble) {
	case USAGE_COMPLETE:
		err_set(e, -ENODEV, "the NVIDIA driver says that there is no GPU");
		return err_hint(e, "in a container, was it given one (--gpus)?");
	case USAGE_NO_LIBRARY:
		err_set(e, -ENODEV, "there is no NVIDIA driver on this machine: %s", u->why);
		return err_hint(e, "in a container, its libraries come from the host (--gpus, the NVIDIA container toolkit)");
	case USAGE_REFUSED:
		err_set(e, -ENODEV, "the NVIDIA driver does not answer: %s", u->why);
		return err_hint(e, "does nvidia-smi work?");
	case USAGE_NO_PROBE:
		err_set(e, -ENOENT, "%s", u->why);
		return err_hint(e, "it belongs beside the executable or into '../lib/cuwhy' from there");
	default:
		return err_set(e, -EIO, "%s", u->why);
	}
}

int memory_of_machine(bool json)
{
	struct gpu_usage *u;
	struct err e = {0};
	int status;
	json_t *o;

	progress_begin("asking the NVIDIA driver");
	u = probe_gpus();
	progress_end();
	status = u->trouble == USAGE_COMPLETE ? EXIT_NOTHING : EXIT_TROUBLE;
	if (u->n == 0) {
		no_answer(u, &e);
		status = cmd_fail(stdout, json, &e, EXIT_TROUBLE);
	} else if (json) {
		o = usage_to_json(u);
		json_dumpf(o, stdout, JSON_COMPACT);
		fputc('\n', stdout);
		json_decref(o);
	} else {
		memory_print_usage(stdout, u, isatty(STDOUT_FILENO) ? term_width(STDOUT_FILENO) : 0);
		if (u->why[0])
			fprintf(stderr, "cuwhy: this is not all: %s\n", u->why);
	}
	usage_free(u);
	return cmd_finish(status);
}
