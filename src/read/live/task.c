/* SPDX-License-Identifier: Apache-2.0
 * Threads from /proc/PID/task (see task.h).
 */
#include "read/live/task.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

static bool read_file(char *to, size_t size, pid_t pid, uint32_t tid, const char *name)
{
	char path[96];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%u/%s", (int)pid, tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, to, size - 1);
	close(fd);
	to[n > 0 ? n : 0] = '\0';
	return n > 0;
}

void task_parse_call(struct task *t, const char *text)
{
	unsigned long long a[6], sp, pc;
	long call;

	t->runs = str_starts(text, "running");
	t->in_call = sscanf(text, "%ld %llx %llx %llx %llx %llx %llx %llx %llx", &call, &a[0], &a[1], &a[2], &a[3],
			    &a[4], &a[5], &sp, &pc) == 9;
	if (!t->in_call && sscanf(text, "-1 %llx %llx", &sp, &pc) == 2) {	/* it sleeps, but in no call: a page fault */
		t->sp = sp;
		t->pc = pc;
		return;
	}
	if (!t->in_call)
		return;
	t->call = call;
	for (int i = 0; i < 6; i++)
		t->arg[i] = a[i];
	t->sp = sp;
	t->pc = pc;
}

/* "NSpid:	4711	12": in each namespace of processes from ours to its own */
static uint32_t last_number(const char *numbers)
{
	unsigned long n = 0;

	for (char *end;; numbers = end) {
		unsigned long next = *numbers == '\n' ? 0 : strtoul(numbers, &end, 10);

		if (*numbers == '\n' || end == numbers)
			return (uint32_t)n;
		n = next;
		end += strspn(end, " \t");
	}
}

bool task_read(pid_t pid, uint32_t tid, struct task *t)
{
	char text[4096], *at;
	unsigned long long n, m;
	int tracer;

	*t = (struct task){.tid = tid, .inner_tid = tid};
	if (!read_file(text, sizeof(text), pid, tid, "stat") || !(at = strrchr(text, ')')))
		return false;
	t->state = at[1] == ' ' ? at[2] : '?';
	if (read_file(t->name, sizeof(t->name), pid, tid, "comm"))
		t->name[strcspn(t->name, "\n")] = '\0';
	str_make_line(t->name);
	if (read_file(text, sizeof(text), pid, tid, "schedstat") && sscanf(text, "%llu %llu", &n, &m) == 2) {
		t->cpu_ns = n;
		t->queued_ns = m;
	}
	if (read_file(text, sizeof(text), pid, tid, "io") && sscanf(text, "rchar: %llu wchar: %llu", &n, &m) == 2)
		t->bytes = n + m;
	if (read_file(text, sizeof(text), pid, tid, "status")) {
		if ((at = strstr(text, "\nvoluntary_ctxt_switches:")) && sscanf(at + 25, "%llu", &n) == 1)
			t->switches = n;
		if ((at = strstr(text, "\nTracerPid:")) && sscanf(at + 11, "%d", &tracer) == 1)
			t->tracer = tracer;
		if ((at = strstr(text, "\nNSpid:")) && last_number(at + 7))
			t->inner_tid = last_number(at + 7);
	}
	if (read_file(text, sizeof(text), pid, tid, "wchan") && strcmp(text, "0") != 0) {
		text[sizeof(t->wchan) - 1] = '\0';
		str_copy(t->wchan, sizeof(t->wchan), text);
	}
	t->runs = t->state == 'R';
	if (read_file(text, sizeof(text), pid, tid, "syscall"))
		task_parse_call(t, text);
	return true;
}

pid_t task_process(pid_t tid)
{
	char text[4096], *at;
	int pid;

	if (!read_file(text, sizeof(text), tid, (uint32_t)tid, "status") || !(at = strstr(text, "\nTgid:")) ||
	    sscanf(at + 6, "%d", &pid) != 1 || pid <= 0)
		return tid;
	return pid;
}

size_t tasks_read(pid_t pid, struct task **list)
{
	char path[64];
	size_t n = 0, cap = 0;
	struct dirent *d;
	uint64_t tid;
	DIR *dir;

	*list = NULL;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		if (!str_u64(d->d_name, &tid))
			continue;
		*list = xgrow(*list, n, &cap, sizeof(**list));
		n += task_read(pid, (uint32_t)tid, &(*list)[n]);
	}
	if (dir)
		closedir(dir);
	return n;
}
