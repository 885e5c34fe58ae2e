/* SPDX-License-Identifier: Apache-2.0
 * Memory that a text mentions: nvidia-smi's tables, the size of a card, what TensorFlow finds when it starts, figures that rise from line to line,
 * /dev/shm.
 */
#include "find/words/env.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "read/text/said.h"

#define SHAPE_SMI 1	/* of nvidia-smi's memory, among the shapes of lines */

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

/* A figure of memory on a line of this shape: does it rise from line to line? */
static void follow_memory(struct text_env *e, uint32_t shape, double size, uint64_t number)
{
	struct text_track *t = NULL;

	for (size_t i = 0; i < e->n_tracks; i++)
		if (e->track[i].shape == shape)
			t = &e->track[i];
	if (!t && e->n_tracks < ENV_TRACKS)
		e->track[e->n_tracks++] =
			(struct text_track){.shape = shape, .first = size, .last = size, .line = number};
	if (!t)
		return;
	t->rises += size > t->last;
	t->falls += size < t->last;
	e->rises += size > t->last && t->rises > 1 && !t->falls;
	t->last = size;
}

/* "|   3  NVIDIA A100-SXM4-80GB          On  |   00000000:1F:00.0 Off |", and of nvidia-smi -q "Attached GPUs   : 4" */
static void read_smi_count(struct text_env *e, const char *s)
{
	int index, count;

	if (sscanf(s, "| %d %*[A-Za-z]", &index) == 1 && index >= 0 && index < 64 && strstr(s, ":00.0 ") &&
	    index + 1 > e->gpus)
		e->gpus = index + 1;
	if (sscanf(s, "Attached GPUs : %d", &count) == 1 && count > 0)
		e->gpus = count;
}

static void read_smi(struct text_env *e, const char *s, uint64_t number)
{
	const char *slash = strstr(s, "MiB / "), *from, *end, *gpu;
	size_t bar = s[0] == '|' ? 1 + strspn(s + 1, " ") : 0;
	double used, total;
	int index;
	unsigned pid;

	if (bar && isdigit((unsigned char)s[bar]) && isalpha((unsigned char)s[bar + strspn(s + bar, "0123456789 ")]))
		e->smi_gpu = (int)strtol(s + bar, NULL, 10);	/* the row above the one with its memory */
	read_smi_count(e, s);
	if (slash) {
		from = slash;
		while (from > s && (isdigit((unsigned char)from[-1]) || from[-1] == '.'))
			from--;
		used = size_at(from, &end);
		total = size_at(slash + 6, &end);
		if (used >= 0 && e->smi_gpu == 0)	/* several tables, one after another */
			follow_memory(e, SHAPE_SMI, used, number);
		if (used >= 0 && total > 0 && used > e->memory_used) {
			e->memory_used = used;
			e->memory_total = total;
		}
	}
	gpu = strstr(s, "GPU ");
	if (e->n_pids == ENV_PIDS || !strstr(s, "MiB") || slash)
		return;
	if ((gpu && sscanf(gpu, "GPU %d PID %u", &index, &pid) == 2) || sscanf(s, "| %d N/A N/A %u", &index, &pid) == 2 ||
	    sscanf(s, "| %d %u C", &index, &pid) == 2 || sscanf(s, "| %d %u G", &index, &pid) == 2)
		e->pid[e->n_pids++] = (struct text_pid){.pid = pid, .gpu = index};
}

/* "8 GB card", "Nvidia gpu with 8gb", "RTX 3090 (24 GB)", "VRAM: 8GB"; not the RAM of the machine. */
static void read_card(struct text_env *e, const char *s)
{
	if (e->gpu_memory > 0 || strlen(s) > 120 || !says(s, SAID_of_a_card) || says(s, SAID_no_card))
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

/* TensorFlow 1 describes each GPU when it starts: "totalMemory: 7.92GiB freeMemory: 190.31MiB", or on a line each "Total memory: …",
 * "Free memory: …". Since 2 it only says what it may use: "Created device /job:localhost/…/device:GPU:0 with 190 MB memory". */
static void read_start(struct text_env *e, const char *s)
{
	const char *at, *end, *created;
	double left = -1;

	if (says_at(s, SAID_total_memory, &at))
		e->start_seen = size_at(at, &end);
	if (e->start_seen > 0 && says_at(s, SAID_free_memory, &at))
		left = size_at(at, &end);
	at = says_at(s, SAID_device_memory, &created);
	if (at)
		left = size_at(created, &end);
	if (left <= 0 || (e->start_free > 0 && left >= e->start_free))
		return;
	e->start_free = left;
	e->start_total = at ? e->start_total : e->start_seen;
}

static void read_growth(struct text_env *e, const char *s, uint64_t number)
{
	const char *at, *end;
	double size = -1;

	if ((!says_at(s, SAID_memory_figure, &at) && !says_at(s, SAID_allocation_figure, &at)) || says(s, SAID_request))
		return;
	for (; *at && size < 0; at++)
		if (isdigit((unsigned char)*at) && !isalnum((unsigned char)at[-1]) && at[-1] != '.')
			size = size_at(at, &end);
	if (size < 0)
		return;
	follow_memory(e, env_hash_letters(s, at), size, number);
}

/* "252G", "1.2G", "65536" (blocks of 1 KiB): bytes. */
static double df_bytes(const char *s)
{
	static const char units[] = "KMGT";
	char *end;
	double value = strtod(s, &end);
	const char *unit = *end && *end != ' ' ? strchr(units, *end) : NULL;

	for (const char *u = units; unit && u <= unit; u++)
		value *= 1024;
	return unit || *end != ' ' ? value : value * 1024;
}

/* A row of df: "tmpfs  252G  1.2G  251G  1% /dev/shm". */
static void read_shm(struct text_env *e, const char *s)
{
	char size[16], used[16], left[16];

	if (!str_ends(s, "% /dev/shm") || sscanf(s, "%*63s %15s %15s %15s", size, used, left) != 3)
		return;
	e->shm_size = df_bytes(size);
	e->shm_free = df_bytes(left);
}

void env_read_memory(struct text_env *e, const char *s, uint64_t number)
{
	read_smi(e, s, number);
	read_card(e, s);
	read_start(e, s);
	read_growth(e, s, number);
	read_shm(e, s);
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
