/* SPDX-License-Identifier: Apache-2.0
 * Children and their children, from /proc (see kin.h).
 */
#include "read/live/kin.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "read/live/task.h"

#define KIN_MAX		512u
#define LOOK_NS		200000000

struct kin {
	pid_t pid, parent;
	uint64_t before;
	bool ready;	/* a thread of it ran, or was ready to */
};

static pid_t parent_of(pid_t pid)
{
	char path[64], text[512], *at;
	int fd, parent = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strrchr(text, ')');
	return at && sscanf(at + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static size_t all_processes(struct kin **list)
{
	size_t n = 0, cap = 0;
	struct dirent *d;
	uint64_t pid;
	DIR *dir = opendir("/proc");

	*list = NULL;
	while (dir && (d = readdir(dir)))
		if (str_u64(d->d_name, &pid)) {
			*list = xgrow(*list, n, &cap, sizeof(**list));
			(*list)[n++] = (struct kin){(pid_t)pid, parent_of((pid_t)pid), 0, false};
		}
	if (dir)
		closedir(dir);
	return n;
}

/* Moves those that descend from `pid` to the front; returns how many. */
static size_t descendants(struct kin *list, size_t n, pid_t pid)
{
	size_t found = 0, from = 0;

	for (pid_t of = pid; found < KIN_MAX; of = list[from++].pid) {
		for (size_t i = found; i < n && found < KIN_MAX; i++)
			if (list[i].parent == of) {
				struct kin k = list[i];

				list[i] = list[found];
				list[found++] = k;
			}
		if (from == found)
			break;
	}
	return found;
}

size_t kin_list(pid_t pid, pid_t also, pid_t *to, size_t max)
{
	struct kin *list;
	size_t all = all_processes(&list), n = descendants(list, all, pid), k = 0;

	if (also > 0 && k < max)
		to[k++] = also;
	for (size_t i = 0; i < n && k < max; i++)
		if (list[i].pid != also)
			to[k++] = list[i].pid;
	free(list);
	return k;
}

/* Time on a processor, or ready for one: on a busy machine, what works may have to wait. A wait is counted when it has ended: `*ready` says
 * whether a thread waits now, or runs. */
static uint64_t wanted_ns(pid_t pid, bool *ready)
{
	struct task *list;
	size_t n = tasks_read(pid, &list);
	uint64_t ns = 0;

	*ready = false;
	for (size_t i = 0; i < n; i++) {
		ns += list[i].cpu_ns + list[i].queued_ns;
		*ready |= list[i].state == 'R';
	}
	free(list);
	return ns;
}

pid_t kin_works(pid_t pid, pid_t also)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	struct kin *list;
	size_t all = all_processes(&list), n = descendants(list, all, pid);
	uint64_t start, most = 0;
	pid_t found = 0;

	if (also > 0) {
		list = xgrow(list, n, &all, sizeof(*list));
		list[n++] = (struct kin){also, pid, 0, false};
	}
	for (size_t i = 0; i < n; i++)
		list[i].before = wanted_ns(list[i].pid, &list[i].ready);
	start = proc_mono_ns();
	if (n)
		nanosleep(&pause, NULL);
	for (size_t i = 0; i < n; i++) {
		bool ready;
		uint64_t now = wanted_ns(list[i].pid, &ready), ns = now > list[i].before ? now - list[i].before : 0;

		if ((double)ns >= WORKS_CPU * (double)(proc_mono_ns() - start) ? ns > most || !found
									       : list[i].ready && ready && !found) {
			most = ns;
			found = list[i].pid;
		}
	}
	free(list);
	return found;
}
