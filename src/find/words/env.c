/* SPDX-License-Identifier: Apache-2.0
 * The machine as a text mentions it (see env.h): every line goes through the files env_*.c, and the place is kept of what it changed.
 */
#include "find/words/env.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "find/words/log.h"
#include "read/text/said.h"

/* A hash of the letters. */
uint32_t env_hash_letters(const char *s, const char *end)
{
	uint32_t h = 2166136261u;

	for (; s < end; s++)
		if (isalpha((unsigned char)*s))
			h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

/* "root@3f2a90b1c44d:/work# ": a container's name is the beginning of its id. */
static bool docker_prompt(const char *s)
{
	const char *at = strchr(s, '@');

	return at && strspn(at + 1, "0123456789abcdef") == 12 && (at[13] == ':' || at[13] == ' ');
}

static void read_launcher(struct text_env *e, const char *s)
{
	const char *at;
	long n;

	for (size_t row = 0;
	     !e->nproc && !says(s, SAID_processes_of_all) && (at = says_before(s, SAID_processes, &row)) != NULL;) {
		n = strtol(at + strspn(at, "=: "), NULL, 10);
		e->nproc = isdigit((unsigned char)at[strspn(at, "=: ")]) && n < 100000 ? (int)n : 0;
	}
}

/* "CUDA_VISIBLE_DEVICES=0,1", `os.environ["CUDA_VISIBLE_DEVICES"] = "0"`, "CUDA_VISIBLE_DEVICES to 3" */
static void read_visible(struct text_env *e, const char *s)
{
	const char *at;
	size_t n;

	if (!says_at(s, SAID_visible, &at))
		return;
	at += strspn(at, "\"'] :");
	if (*at == '=' || *at == ',')
		at += strspn(at, " =,\"'");
	else if (says(at, SAID_to_value))
		at += 3 + strspn(at + 3, "\"'");
	else
		return;
	n = strcspn(at, " \"';)") + 1;
	e->visible_set = true;
	str_copy(e->visible, n < sizeof(e->visible) ? n : sizeof(e->visible), at);
}

/* Lines of code that start CUDA. In a traceback such lines come after the ones that a script starts with. */
static bool uses_cuda(const struct text_env *e, const char *s)
{
	if (says(s, SAID_starts_cuda) && !says(s, SAID_out_of_memory))
		return true;
	return e->script && says(s, SAID_starts_cuda_in_script);
}

static void read_devices(struct text_env *e, const char *s, uint64_t number)
{
	const char *after;

	for (const char *at = s; (at = says_on(s, at, SAID_device, &after)) != NULL; at++) {
		long device = strtol(after - 1, NULL, 10);

		if (device > e->device_max && device < 64)
			e->device_max = (int)device;
	}
	for (const char *at = s; (at = says_on(s, at, SAID_mig_device, &after)) != NULL; at++)
		e->migs++;
	e->script |= says(s, SAID_script);
	if (!e->cuda_used_line && !says(s, SAID_no_code_of_user) && uses_cuda(e, s))
		e->cuda_used_line = number;
	if (!e->visible_line && says(s, SAID_sets_visible))
		e->visible_line = number;
}

/* "WorkNCCL(SeqNum=8123, OpType=ALLREDUCE, …": what each rank waited for. */
static void read_collectives(struct text_env *e, const char *s)
{
	const char *at, *op;
	uint64_t n;
	uint32_t kind;

	if (!says_at(s, SAID_collective, &at) || !says_at(at, SAID_collective_kind, &op))
		return;
	n = strtoull(at, NULL, 10);
	kind = env_hash_letters(op, op + strcspn(op, ","));
	e->ops_differ |= e->op && e->op != kind;
	e->op = kind;
	e->seq_max = n > e->seq_max ? n : e->seq_max;
	e->seq_min = !e->seq_min || n < e->seq_min ? n : e->seq_min;
	e->ops_differ |= e->seq_max - e->seq_min > 64;
}

/* `File "model.py", line 34, in forward`, then the line of code. */
static void read_forward_trace(struct text_env *e, const char *s)
{
	char file[240];
	unsigned number;

	if (says(s, SAID_forward_trace)) {
		e->forward.open = true;
		e->forward.code = false;
		e->forward.place[0] = '\0';
	} else if (e->forward.open && sscanf(s, "File \"%239[^\"]\", line %u", file, &number) == 2) {
		e->forward.code = true;
		if (text_frame_owner(file) == OWNER_USER)
			snprintf(e->forward.place, sizeof(e->forward.place), "%s:%u", file, number);
	} else {
		e->forward.open &= e->forward.code;
		e->forward.code = false;
	}
}

/* Which fact says what a line changed. Of several rows of a fact, the first with a place counts. */
static const struct {
	enum fact_id fact;
	size_t at, size;
} places[] = {
#define PLACE(fact, field) {FACT_##fact, offsetof(struct text_env, field), sizeof(((struct text_env *)NULL)->field)}
	PLACE(text_driver, driver),
	PLACE(text_driver_major, driver),
	PLACE(text_driver_cuda, driver_cuda),
	PLACE(text_driver_cuda, driver),
	PLACE(text_torch, torch),
	PLACE(text_torch_cuda, torch_cuda),
	PLACE(text_torch_cuda, torch),
	PLACE(text_torch_gpu, torch_cuda),
	PLACE(text_torch_cpu, torch),
	PLACE(text_gpu, gpu),
	PLACE(text_gpu_cc, capability),
	PLACE(text_gpu_cc, gpu),
	PLACE(text_gpus, gpus),
	PLACE(text_archs, arch_list),
	PLACE(text_gpu_memory, gpu_memory),
	PLACE(text_visible, visible),
	PLACE(text_visible_entries, visible),
	PLACE(text_nproc, nproc),
	PLACE(text_smi_used, memory_used),
	PLACE(text_smi_shared, n_pids),
	PLACE(text_smi_first, n_pids),
	PLACE(text_growth, rises),
	PLACE(text_start_free, start_free),
	PLACE(text_device, device_max),
	PLACE(text_elements, elements),
	PLACE(text_largest, largest),
	PLACE(text_migs, migs),
	PLACE(text_block, block),
	PLACE(text_number, number),
	PLACE(text_ranks_differ, ops_differ),
	PLACE(text_visible_late, visible_line),
#undef PLACE
};

_Static_assert(sizeof(places) / sizeof(places[0]) <= ENV_PLACES, "env.h has room for all of them");

/* The first bytes of a value: enough to see that it changed. */
static uint64_t value_begin(const struct text_env *e, size_t i)
{
	uint64_t begin = 0;

	memcpy(&begin, (const char *)e + places[i].at, places[i].size < sizeof(begin) ? places[i].size : sizeof(begin));
	return begin;
}

static void note_places(struct text_env *e, const char *s, const char *file, uint64_t line)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		uint64_t now = value_begin(e, i);
		struct text_place *p = &e->place[i];

		if (now == p->was)
			continue;
		*p = (struct text_place){.file = file, .line = line, .was = now};
		str_copy(p->text, sizeof(p->text), s);
	}
}

const struct text_place *env_place(const struct text_env *e, size_t n, enum fact_id *fact)
{
	if (n >= sizeof(places) / sizeof(places[0]))
		return NULL;
	*fact = places[n].fact;
	return &e->place[n];
}

void env_init(struct text_env *e)
{
	*e = (struct text_env){.gpus = -1, .memory_used = -1, .memory_total = -1, .device_max = -1};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		e->place[i].was = value_begin(e, i);
}

void env_line(struct text_env *e, const char *s, uint64_t number, const char *file, uint64_t line)
{
	if (!*s)
		return;
	snippets_line(&e->snippets, s, line);
	settings_line(&e->settings, s, file, line);
	said_facts_line(&e->said, s, file, line);
	if (docker_prompt(s))
		said_facts_add(&e->said, SAYS_text_container, s, file, line);
	env_read_versions(e, s);
	env_read_gpu(e, s);
	read_launcher(e, s);
	read_visible(e, s);
	read_devices(e, s, number);
	env_read_numbers(e, s);
	if (e->empty_here)
		said_facts_add(&e->said, SAYS_text_empty, s, file, line);
	read_collectives(e, s);
	read_forward_trace(e, s);
	env_read_memory(e, s, number);
	compute_modes_line(&e->modes, s);
	note_places(e, s, file, line);
}
