/* SPDX-License-Identifier: Apache-2.0
 * See live.h. The keeper of a `cuwhy run` holds a descriptor of each segment, and the process that records has them mapped one behind
 * another: the mappings say which is where. Reading the process's own memory would need the right to trace it, which many systems
 * give to its parents only.
 */
#include "read/recording/live.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "read/recording/trace.h"

#define KEEPER		"cuwhy-keeper"	/* as run_keeper.c names itself */
#define SEGMENT_NAME	"/memfd:cuwhy (deleted)"
#define BYTES_MAX	(1ull << 30)
#define GENERATIONS	256		/* from a process up to its `cuwhy run` */

struct running { pid_t pid, parent; bool keeper; };
struct runnings { struct running *list; size_t n, cap; };

/* Neither asks for the memory of the process, which one that hangs in the driver may have locked. */
static bool read_running(struct running *r, const char *name)
{
	char path[64], text[512], *begin, *end;
	int parent;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", name);
	text[fs_read_head(path, text, sizeof(text) - 1)] = '\0';
	begin = strchr(text, '(');
	end = strrchr(text, ')');
	if (!begin || !end || sscanf(end + 1, " %*c %d", &parent) != 1)
		return false;
	*end = '\0';
	*r = (struct running){(pid_t)strtol(name, NULL, 10), parent, strcmp(begin + 1, KEEPER) == 0};
	return true;
}

static struct runnings list_running(void)
{
	struct runnings all = {0};
	DIR *d = opendir("/proc");
	struct dirent *ent;

	while (d && (ent = readdir(d))) {
		struct running r;

		if (!isdigit((unsigned char)ent->d_name[0]) || !read_running(&r, ent->d_name))
			continue;
		all.list = xgrow(all.list, all.n, &all.cap, sizeof(*all.list));
		all.list[all.n++] = r;
	}
	if (d)
		closedir(d);
	return all;
}

static pid_t parent_of(const struct runnings *all, pid_t pid)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->list[i].pid == pid)
			return all->list[i].parent;
	return 0;
}

static bool descends_from(const struct runnings *all, pid_t pid, pid_t from)
{
	for (int i = 0; i < GENERATIONS && pid > 1; i++) {
		pid = parent_of(all, pid);
		if (pid == from)
			return true;
	}
	return false;
}

struct memory_file { ino_t inode; int fd; };
struct memory_files { struct memory_file *list; size_t n, cap; };

static void file_add(struct memory_files *f, const char *path)
{
	char link[64];
	ssize_t n = readlink(path, link, sizeof(link) - 1);
	struct stat st;
	int fd;

	if (n <= 0)
		return;
	link[n] = '\0';
	fd = strcmp(link, SEGMENT_NAME) == 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	if (fstat(fd, &st) != 0) {
		close(fd);
		return;
	}
	f->list = xgrow(f->list, f->n, &f->cap, sizeof(*f->list));
	f->list[f->n++] = (struct memory_file){st.st_ino, fd};
}

static struct memory_files files_of(pid_t keeper)
{
	struct memory_files f = {0};
	struct dirent *ent;
	char path[64];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)keeper);
	d = opendir(path);
	while (d && (ent = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%.20s", (int)keeper, ent->d_name);
		file_add(&f, path);
	}
	if (d)
		closedir(d);
	return f;
}

static void files_release(struct memory_files *f)
{
	for (size_t i = 0; i < f->n; i++)
		close(f->list[i].fd);
	free(f->list);
}

static int segment_file(const struct memory_files *f, ino_t inode)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->list[i].inode == inode)
			return f->list[i].fd;
	return -1;
}

struct mapped { uint64_t start, len; ino_t inode; };
struct mappings { struct mapped *list; size_t n, cap; };

static void mapping_add(struct mappings *m, const char *line)
{
	uint64_t start, end, offset;
	unsigned long inode;

	if (!strstr(line, SEGMENT_NAME) ||
	    sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %lu", &start, &end, &offset, &inode) != 4)
		return;
	if (end <= start || offset != 0)
		return;
	m->list = xgrow(m->list, m->n, &m->cap, sizeof(*m->list));
	m->list[m->n++] = (struct mapped){start, end - start, inode};	/* in the order of their addresses */
}

static struct mappings mappings_of(pid_t pid)
{
	struct mappings m = {0};
	char path[64], *line = NULL;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	while (f && getline(&line, &size, f) > 0)
		mapping_add(&m, line);
	if (f)
		fclose(f);
	free(line);
	return m;
}

static struct trace *trace_of(const struct mappings *m, const struct memory_files *files)
{
	const struct mapped *last = m->n ? &m->list[m->n - 1] : NULL;
	uint64_t len = last ? last->start + last->len - m->list[0].start : 0;
	struct err e = {0};
	char *bytes;

	if (!len || len > BYTES_MAX)
		return NULL;
	bytes = xcalloc(1, len);
	for (size_t i = 0; i < m->n; i++) {
		int fd = segment_file(files, m->list[i].inode);

		if (fd >= 0)
			fs_read_data(fd, bytes + (m->list[i].start - m->list[0].start), m->list[i].len);
	}
	return trace_from_bytes(bytes, len, &e);
}

/* As the process itself knows it: the last one of several, if it is in a container. */
static uint32_t own_pid(pid_t pid)
{
	char path[64], text[4096], *at;
	uint32_t own = (uint32_t)pid;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	text[fs_read_head(path, text, sizeof(text) - 1)] = '\0';
	at = strstr(text, "\nNSpid:");
	if (!at)
		return own;
	at += strlen("\nNSpid:");
	at[strcspn(at, "\n")] = '\0';
	for (char *rest = NULL, *word = strtok_r(at, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest))
		own = (uint32_t)strtoul(word, NULL, 10);
	return own;
}

/* A child has its parent's mappings until it uses CUDA itself: that recording is not its own. */
static struct trace *live_open(pid_t pid, const struct memory_files *files)
{
	struct mappings m = mappings_of(pid);
	struct trace *t = trace_of(&m, files);

	free(m.list);
	if (t && trace_header(t)->pid != own_pid(pid)) {
		trace_free(t);
		return NULL;
	}
	return t;
}

size_t live_list(struct live **list)
{
	struct runnings all = list_running();
	size_t n = 0, cap = 0;

	*list = NULL;
	for (size_t k = 0; k < all.n; k++) {
		struct memory_files files = all.list[k].keeper ? files_of(all.list[k].pid) : (struct memory_files){0};

		for (size_t i = 0; files.n && i < all.n; i++) {
			pid_t pid = all.list[i].pid;
			struct trace *t = all.list[i].keeper || !descends_from(&all, pid, all.list[k].parent)
						  ? NULL
						  : live_open(pid, &files);

			if (!t)
				continue;
			*list = xgrow(*list, n, &cap, sizeof(**list));
			(*list)[n++] = (struct live){pid, t};
		}
		files_release(&files);
	}
	free(all.list);
	return n;
}

void live_free(struct live *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		trace_free(list[i].trace);
	free(list);
}
