/* SPDX-License-Identifier: Apache-2.0
 * Memory of GPUs as a text mentions it (see env.h): tables of nvidia-smi, figures that rise from line to line.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "input/text/env_priv.h"
#include "base/banned.h"

uint32_t env_shape(const char *s, const char *end)
{
	uint32_t h = 2166136261u;

	for (; s < end; s++)
		if (isalpha((unsigned char)*s))
			h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

/* A size such as "7012 MiB", "31.2 GB", "14980MiB", "14.2G"; -1 when none begins here. */
static double size_at(const char *s, const char **end)
{
	char *unit;
	double v = strtod(s, &unit), scale;

	while (*unit == ' ')
		unit++;
	if (unit == s || (*unit != 'M' && *unit != 'G' && *unit != 'K'))
		return -1;
	scale = *unit == 'M' ? 1048576.0 : *unit == 'G' ? 1073741824.0 : 1024.0;
	unit += unit[1] == 'i' ? 2 : 1;
	if (*unit == 'B' || *unit == 'b')
		unit++;
	if (isalnum((unsigned char)*unit))
		return -1;
	*end = unit;
	return v * scale;
}

static void read_smi(struct text_env *e, const char *s)
{
	const char *slash = strstr(s, "MiB / "), *from, *end, *gpu;
	double used, total;
	int index;
	unsigned pid;

	e->smi |= strstr(s, "NVIDIA-SMI") || strstr(s, "nvidia-smi");
	e->no_processes |= strstr(s, "No running processes found") || strcasestr(s, "no process listed") || strcasestr(s, "no processes listed");
	if (slash) {
		from = slash;
		while (from > s && (isdigit((unsigned char)from[-1]) || from[-1] == '.'))
			from--;
		used = size_at(from, &end);
		total = size_at(slash + 6, &end);
		if (used >= 0 && total > 0 && used > e->memory_used) {
			e->memory_used = used;
			e->memory_total = total;
		}
	}
	gpu = strstr(s, "GPU ");
	if (e->n_pids == ENV_PIDS || !strstr(s, "MiB") || slash)
		return;
	if ((gpu && sscanf(gpu, "GPU %d PID %u", &index, &pid) == 2) ||
	    sscanf(s, "| %d N/A N/A %u", &index, &pid) == 2 || sscanf(s, "| %d %u C", &index, &pid) == 2 || sscanf(s, "| %d %u G", &index, &pid) == 2)
		e->pid[e->n_pids++] = (struct text_pid){.pid = pid, .gpu = index};
}

/* "8 GB card", "Nvidia gpu with 8gb", "RTX 3090 (24 GB)", "VRAM: 8GB"; not the RAM of the machine. */
static void read_card(struct text_env *e, const char *s)
{
	static const char *const words[] = {"gpu", "card", "vram", "geforce", "rtx", "gtx", "tesla"};
	bool about = false;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		about |= strcasestr(s, words[i]) != NULL;
	if (!about || e->gpu_memory > 0 || strlen(s) > 120 || strstr(s, "allocate") || strstr(s, "MiB /"))
		return;
	for (const char *at = s; *at; at++) {
		char *unit;
		double n;

		if (!isdigit((unsigned char)*at) || (at > s && (isalnum((unsigned char)at[-1]) || at[-1] == '.')))
			continue;
		n = strtod(at, &unit);
		unit += *unit == ' ';
		if ((strncasecmp(unit, "gb", 2) && strncasecmp(unit, "gib", 3)) || n < 1 || n > 1000)
			continue;
		unit += 2 + (unit[1] == 'i' || unit[1] == 'I');
		if (isalnum((unsigned char)*unit) || strncasecmp(unit, " ram", 4) == 0)
			continue;
		e->gpu_memory = n * 1073741824.0;
		return;
	}
}

static void follow_memory(struct text_env *e, const char *s, uint64_t number)
{
	const char *mem = strcasestr(s, "mem"), *at;
	struct text_track *t = NULL;
	const char *end;
	double size = -1;
	uint32_t shape;

	if (!mem)
		mem = strcasestr(s, "alloc");
	if (!mem || strstr(s, "Tried to allocate"))
		return;
	for (at = mem; *at && size < 0; at++)
		if (isdigit((unsigned char)*at) && !isalnum((unsigned char)at[-1]) && at[-1] != '.')
			size = size_at(at, &end);
	if (size < 0)
		return;
	shape = env_shape(s, at);
	for (size_t i = 0; i < e->n_tracks; i++)
		if (e->track[i].shape == shape)
			t = &e->track[i];
	if (!t && e->n_tracks < ENV_TRACKS) {
		e->track[e->n_tracks++] = (struct text_track){.shape = shape, .first = size, .last = size, .line = number};
		return;
	}
	if (!t)
		return;
	t->rises += size > t->last;
	t->falls += size < t->last;
	t->last = size;
}

const struct text_track *env_growth(const struct text_env *e)
{
	for (size_t i = 0; i < e->n_tracks; i++) {
		const struct text_track *t = &e->track[i];

		if (t->rises >= 2 && !t->falls && t->last > t->first * 1.1)
			return t;
	}
	return NULL;
}

size_t env_shared_pids(const struct text_env *e)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n_pids; i++)
		for (size_t k = 0; e->pid[i].gpu == 0 && k < e->n_pids; k++)
			if (e->pid[k].pid == e->pid[i].pid && e->pid[k].gpu != 0) {
				n++;
				break;
			}
	return n;
}

size_t env_first_pids(const struct text_env *e)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n_pids; i++)
		n += e->pid[i].gpu == 0;
	return n;
}

void env_memory(struct text_env *e, const char *s, uint64_t number)
{
	read_smi(e, s);
	read_card(e, s);
	follow_memory(e, s, number);
}
