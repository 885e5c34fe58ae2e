/* SPDX-License-Identifier: Apache-2.0
 * Reads the host's memory and the limits of a process (see ram.h). Nothing read is trusted: what is missing or
 * makes no sense is unknown.
 */
#include "probe/ram.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "base/tree.h"

#define FILE_MAX	(64u << 10)
#define DEPTH_MAX	32	/* nested cgroups */
#define CAP_IPC_LOCK_BIT 14
#define GROUP_NO_LIMIT	(1ull << 60)	/* version 1 says "none" with a very large number */

static bool ram_is_number(uint64_t v)
{
	return v < RAM_UNLIMITED;
}

static uint64_t bytes_less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Whose files are read. */
struct ram_from {
	const char *root;
	char process[32];	/* "/proc/7" */
};

/* Its text, owned by the caller; "" when it cannot be read. */
static char *ram_text(const struct ram_from *from, const char *dir, const char *name)
{
	char *path = xasprintf("%s/%s", dir, name);
	struct buf b;

	buf_init(&b, FILE_MAX);
	tree_read(from->root, path, &b);
	free(path);
	return b.data ? buf_take(&b) : xstrdup("");
}

/* "123", "max", "unlimited". */
static uint64_t number_at(const char *s, int base, uint64_t unit)
{
	unsigned long long v;

	if (str_starts(s, "unlimited") || str_starts(s, "max"))
		return RAM_UNLIMITED;
	if (!(base == 16 ? isxdigit((unsigned char)*s) : isdigit((unsigned char)*s)))	/* strtoull takes "-1" */
		return RAM_UNKNOWN;
	v = strtoull(s, NULL, base);
	return v > UINT64_MAX / 2 / unit ? RAM_UNKNOWN : v * unit;
}

/* What follows this word at the start of a line; NULL when no line starts with it. */
static const char *text_behind(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (; text; text = strchr(text, '\n'), text = text ? text + 1 : NULL)
		if (strncmp(text, word, n) == 0 && (text[n] == ' ' || text[n] == '\t'))
			return text + n + strspn(text + n, " \t");
	return NULL;
}

static uint64_t ram_value(const char *text, const char *word, int base, uint64_t unit)
{
	const char *at = text_behind(text, word);

	return at ? number_at(at, base, unit) : RAM_UNKNOWN;
}

static void ram_look_at_machine(struct ram_state *r, const struct ram_from *from)
{
	char *text = ram_text(from, "/proc", "meminfo");

	r->total = ram_value(text, "MemTotal:", 10, 1024);
	r->available = ram_value(text, "MemAvailable:", 10, 1024);
	r->swap_total = ram_value(text, "SwapTotal:", 10, 1024);
	r->swap_free = ram_value(text, "SwapFree:", 10, 1024);
	free(text);
	text = ram_text(from, "/proc", "version");
	r->wsl = strcasestr(text, "microsoft") != NULL;
	free(text);
}

/* "Max locked memory         8388608              8388608              bytes": soft, then hard */
static uint64_t hard_limit(const char *text, const char *word)
{
	const char *at = text_behind(text, word);

	at = at ? at + strcspn(at, " \n") : "";
	return number_at(at + strspn(at, " "), 10, 1);
}

static void ram_look_at_process(struct ram_state *r, const struct ram_from *from)
{
	char *text = ram_text(from, from->process, "limits");
	uint64_t caps;

	r->lock_limit = ram_value(text, "Max locked memory", 10, 1);
	r->lock_hard = hard_limit(text, "Max locked memory");
	r->files = ram_value(text, "Max open files", 10, 1);
	r->address_space = ram_value(text, "Max address space", 10, 1);
	free(text);
	text = ram_text(from, from->process, "status");
	caps = ram_value(text, "CapEff:", 16, 1);
	if (caps < RAM_UNLIMITED && (caps & 1ull << CAP_IPC_LOCK_BIT))
		r->lock_limit = RAM_UNLIMITED;
	free(text);
}

/* One controller's folder; version 2 and version 1 name their files differently. */
struct group {
	const char *mount, *limit, *used, *cache[2];
};

static const struct group groups[2] = {
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", {"total_inactive_file", "total_active_file"}},
	{"/sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file", "active_file"}},
};

static uint64_t number_in(const struct ram_from *from, const char *dir, const char *name)
{
	char *text = ram_text(from, dir, name);
	uint64_t v = number_at(text, 10, 1);

	free(text);
	return v != RAM_UNKNOWN && v >= GROUP_NO_LIMIT ? RAM_UNLIMITED : v;
}

/* Without the file cache; unknown when not reported. */
static uint64_t used_in(const struct ram_from *from, const char *dir, const struct group *g)
{
	char *text = ram_text(from, dir, "memory.stat");
	uint64_t used = number_in(from, dir, g->used), cache;

	for (int i = 0; i < 2 && ram_is_number(used); i++) {
		cache = ram_value(text, g->cache[i], 10, 1);
		used = ram_is_number(cache) ? bytes_less(used, cache) : used;
	}
	free(text);
	return ram_is_number(used) ? used : RAM_UNKNOWN;
}

static uint64_t room_of(uint64_t limit, uint64_t used)
{
	return ram_is_number(used) ? bytes_less(limit, used) : limit;
}

static void ram_look_at_group(struct ram_state *r, const struct ram_from *from, const char *dir, const struct group *g)
{
	uint64_t limit = number_in(from, dir, g->limit), used;

	if (limit == RAM_UNLIMITED && r->group_limit == RAM_UNKNOWN)
		r->group_limit = RAM_UNLIMITED;
	if (!ram_is_number(limit))
		return;
	used = used_in(from, dir, g);
	if (ram_is_number(used) && used > limit)
		used = limit;
	if (!ram_is_number(r->group_limit) || room_of(limit, used) < room_of(r->group_limit, r->group_used)) {
		r->group_limit = limit;
		r->group_used = used;
	}
}

/* From the process's own group up to the root: each may have a limit. In a container the path may be the host's, where
 * only the root is visible. */
static void climb(struct ram_state *r, const struct ram_from *from, char *path, const struct group *g)
{
	for (int i = 0; i < DEPTH_MAX; i++) {
		char *dir = xasprintf("%s%s", g->mount, path), *slash = strrchr(path, '/');

		ram_look_at_group(r, from, dir, g);
		free(dir);
		if (!*path || !slash)
			break;
		*slash = '\0';
	}
}

static bool is_memory_line(const char *line, bool *second)
{
	const char *names = strchr(line, ':'), *at, *end;

	*second = str_starts(line, "0::");
	if (*second || !names)
		return *second;
	end = strchr(names + 1, ':');
	at = strstr(names, ":memory:");
	if (!at)
		at = strstr(names, ",memory:");
	if (!at)
		at = strstr(names, ":memory,");
	if (!at)
		at = strstr(names, ",memory,");
	return end && at && at <= end;
}

static void ram_look_at_groups(struct ram_state *r, const struct ram_from *from)
{
	char *text = ram_text(from, from->process, "cgroup"), *rest = text, *line;
	bool second;

	while ((line = strsep(&rest, "\n")) != NULL) {
		char *path = strchr(line, ':');

		path = path ? strchr(path + 1, ':') : NULL;
		if (path && is_memory_line(line, &second) && !strstr(path, ".."))
			climb(r, from, path + 1, &groups[second]);
	}
	free(text);
}

void ram_unknown(struct ram_state *r)
{
	*r = (struct ram_state){.total = RAM_UNKNOWN,
				.available = RAM_UNKNOWN,
				.swap_total = RAM_UNKNOWN,
				.swap_free = RAM_UNKNOWN,
				.lock_limit = RAM_UNKNOWN, .lock_hard = RAM_UNKNOWN, .files = RAM_UNKNOWN,
				.address_space = RAM_UNKNOWN, .group_limit = RAM_UNKNOWN, .group_used = RAM_UNKNOWN};
}

void ram_look(struct ram_state *r, const char *root, pid_t pid)
{
	struct ram_from from = {.root = root};

	ram_unknown(r);
	r->mono_ns = proc_mono_ns();
	snprintf(from.process, sizeof(from.process), "/proc/%d", (int)pid);
	/* 0, or it is gone by now: our children usually have our limits */
	if (pid == 0 || (!*root && access(from.process, F_OK) != 0))
		snprintf(from.process, sizeof(from.process), "/proc/self");
	ram_look_at_machine(r, &from);
	ram_look_at_process(r, &from);
	ram_look_at_groups(r, &from);
}

/* The lock limit comes last: the driver does not always obey it, so it only counts where nothing else
 * explains the failure. */
enum ram_limit ram_limit_of(const struct ram_state *r, uint64_t request, uint64_t pinned, uint64_t peak, uint64_t *room)
{
	uint64_t least = request;
	enum ram_limit found = RAM_LIMIT_NONE;
	struct { enum ram_limit limit; bool known; uint64_t room; } one[] = {
		{RAM_LIMIT_RAM, ram_is_number(r->available), r->available},
		   {RAM_LIMIT_GROUP, ram_is_number(r->group_limit) && ram_is_number(r->group_used),
		    bytes_less(r->group_limit, r->group_used)},
		   {RAM_LIMIT_WSL, r->wsl && ram_is_number(r->total) && peak <= r->total / 2,
		    bytes_less(r->total / 2, pinned)}};

	for (size_t i = 0; i < sizeof(one) / sizeof(one[0]); i++)
		if (one[i].known && one[i].room < least) {
			found = one[i].limit;
			least = one[i].room;
		}
	if (!found && ram_is_number(r->lock_limit) && peak <= r->lock_limit &&
	    bytes_less(r->lock_limit, pinned) < request) {
		found = RAM_LIMIT_LOCKED;
		least = bytes_less(r->lock_limit, pinned);
	}
	if (found)
		*room = least;
	return found;
}

const char *ram_limit_id(enum ram_limit l)
{
	static const char *const ids[] = {
#define X(name, id) id,
		RAM_LIMITS(X)
#undef X
	};

	return ids[l];
}
