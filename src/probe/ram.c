/* SPDX-License-Identifier: Apache-2.0
 * Reads the host's memory and the limits of a process (see ram.h). Nothing that is read is trusted: what is missing or
 * makes no sense is unknown.
 */
#include "probe/ram.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "base/banned.h"

#define FILE_MAX	(64u << 10)
#define DEPTH_MAX	32	/* cgroups above each other */
#define CAP_IPC_LOCK_BIT 14
#define GROUP_NO_LIMIT	(1ull << 60)	/* version 1 says "none" with a very large number */

/* --- small files ------------------------------------------------------------------------------ */

/* Its text, owned by the caller; "" when it cannot be read. */
static char *text_of(const char *path)
{
	char *text = xcalloc(1, FILE_MAX + 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t n = 0;
	ssize_t got;

	while (fd >= 0 && n < FILE_MAX && (got = read(fd, text + n, FILE_MAX - n)) > 0)
		n += (size_t)got;
	if (fd >= 0)
		close(fd);
	return text;
}

/* The number after a word at the beginning of a line, times `unit`. */
static uint64_t value_of(const char *text, const char *word, int base, uint64_t unit)
{
	size_t n = strlen(word);
	char *end;

	for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		unsigned long long v;
		const char *at = line + n;

		if (strncmp(line, word, n) != 0)
			continue;
		at += strspn(at, " \t");
		v = strtoull(at, &end, base);
		return end == at || v > UINT64_MAX / 2 / unit ? RAM_UNKNOWN : v * unit;
	}
	return RAM_UNKNOWN;
}

static uint64_t number_in(const char *path)
{
	char *text = text_of(path);
	uint64_t v = value_of(text, "", 10, 1);

	if (str_starts(text, "max") || (v != RAM_UNKNOWN && v >= GROUP_NO_LIMIT))
		v = RAM_UNLIMITED;
	free(text);
	return v;
}

/* --- the machine ------------------------------------------------------------------------------ */

static void look_at_machine(struct ram_state *r, const char *root)
{
	char *path = xasprintf("%s/proc/meminfo", root), *text = text_of(path);

	r->total = value_of(text, "MemTotal:", 10, 1024);
	r->available = value_of(text, "MemAvailable:", 10, 1024);
	free(text);
	free(path);
	path = xasprintf("%s/proc/version", root);
	text = text_of(path);
	r->wsl = strcasestr(text, "microsoft") != NULL;
	free(text);
	free(path);
}

static void look_at_process(struct ram_state *r, const char *root, pid_t pid)
{
	char *path = xasprintf("%s/proc/%d/limits", root, (int)pid), *text = text_of(path);
	const char *line = strstr(text, "Max locked memory");
	uint64_t caps;

	r->lock_limit = RAM_UNKNOWN;
	if (line)
		r->lock_limit = value_of(line, "Max locked memory", 10, 1);
	if (line && r->lock_limit == RAM_UNKNOWN && str_starts(line + strspn(line + 17, " ") + 17, "unlimited"))
		r->lock_limit = RAM_UNLIMITED;
	free(text);
	free(path);
	path = xasprintf("%s/proc/%d/status", root, (int)pid);
	text = text_of(path);
	caps = value_of(text, "CapEff:", 16, 1);
	if (caps != RAM_UNKNOWN && (caps & 1ull << CAP_IPC_LOCK_BIT))
		r->lock_limit = RAM_UNLIMITED;
	free(text);
	free(path);
}

/* --- cgroups ---------------------------------------------------------------------------------- */

/* One controller's folder; version 2 and version 1 name their files differently. */
static void look_at_group(struct ram_state *r, const char *dir, bool second)
{
	char *limit = xasprintf("%s/%s", dir, second ? "memory.max" : "memory.limit_in_bytes");
	char *used = xasprintf("%s/%s", dir, second ? "memory.current" : "memory.usage_in_bytes");
	char *stat = xasprintf("%s/memory.stat", dir), *text = text_of(stat);
	uint64_t most = number_in(limit), now = number_in(used), cache = 0, n;

	n = value_of(text, second ? "inactive_file" : "total_inactive_file", 10, 1);
	cache += n == RAM_UNKNOWN ? 0 : n;
	n = value_of(text, second ? "active_file" : "total_active_file", 10, 1);
	cache += n == RAM_UNKNOWN ? 0 : n;
	if (now != RAM_UNKNOWN && now != RAM_UNLIMITED)
		now = now > cache ? now - cache : 0;
	if (most == RAM_UNLIMITED && r->group_limit == RAM_UNKNOWN)
		r->group_limit = RAM_UNLIMITED;
	if (most < RAM_UNLIMITED && (r->group_limit >= RAM_UNLIMITED || now >= RAM_UNLIMITED ||
				     (r->group_used < RAM_UNLIMITED && r->group_limit - r->group_used > most - now))) {
		r->group_limit = most;
		r->group_used = now >= RAM_UNLIMITED ? RAM_UNKNOWN : now < most ? now : most;
	}
	free(text);
	free(stat);
	free(used);
	free(limit);
}

/* From the process's own group up to the root: each may have a limit. In a container the path may be the host's, of
 * which only the root is visible. */
static void climb(struct ram_state *r, const char *mount, char *path, bool second)
{
	for (int i = 0; i < DEPTH_MAX; i++) {
		char *dir = xasprintf("%s%s", mount, path), *slash = strrchr(path, '/');

		look_at_group(r, dir, second);
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
	return end && at && at <= end;
}

static void look_at_groups(struct ram_state *r, const char *root, pid_t pid)
{
	char *file = xasprintf("%s/proc/%d/cgroup", root, (int)pid), *text = text_of(file), *rest = text, *line;
	char *mount[2] = {xasprintf("%s/sys/fs/cgroup/memory", root), xasprintf("%s/sys/fs/cgroup", root)};
	bool second;

	r->group_limit = r->group_used = RAM_UNKNOWN;
	while ((line = strsep(&rest, "\n")) != NULL) {
		char *path = strchr(line, ':');

		path = path ? strchr(path + 1, ':') : NULL;
		if (path && is_memory_line(line, &second) && !strstr(path, ".."))
			climb(r, mount[second], path + 1, second);
	}
	free(mount[0]);
	free(mount[1]);
	free(text);
	free(file);
}

void ram_look(struct ram_state *r, const char *root, pid_t pid)
{
	char *dir = xasprintf("%s/proc/%d", root, (int)pid);

	*r = (struct ram_state){.mono_ns = proc_mono_ns()};
	if (access(dir, F_OK) != 0 && !*root)	/* it is gone by now: what we started has our limits as a rule */
		pid = getpid();
	free(dir);
	look_at_machine(r, root);
	look_at_process(r, root, pid);
	look_at_groups(r, root, pid);
}

/* --- what stopped a request ------------------------------------------------------------------- */

static bool is_number(uint64_t v)
{
	return v < RAM_UNLIMITED;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* The lock limit comes last: the driver does not always keep to it, so that it only counts where nothing else
 * explains the failure. */
enum ram_limit ram_limit_of(const struct ram_state *r, uint64_t request, uint64_t pinned, uint64_t peak, uint64_t *room)
{
	uint64_t least = request;
	enum ram_limit found = RAM_LIMIT_NONE;
	struct { enum ram_limit limit; bool known; uint64_t room; } one[] = {
		{RAM_LIMIT_RAM, is_number(r->available), r->available},
		{RAM_LIMIT_GROUP, is_number(r->group_limit) && is_number(r->group_used), less(r->group_limit, r->group_used)},
		{RAM_LIMIT_WSL, r->wsl && is_number(r->total) && peak <= r->total / 2, less(r->total / 2, pinned)}};

	for (size_t i = 0; i < sizeof(one) / sizeof(one[0]); i++)
		if (one[i].known && one[i].room < least) {
			found = one[i].limit;
			least = one[i].room;
		}
	if (!found && is_number(r->lock_limit) && peak <= r->lock_limit && less(r->lock_limit, pinned) < request) {
		found = RAM_LIMIT_LOCKED;
		least = less(r->lock_limit, pinned);
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
