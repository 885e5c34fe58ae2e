/* SPDX-License-Identifier: Apache-2.0
 * What a running process has loaded (see process.h).
 */
#include "read/machine/pyenv/process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/tree.h"
#include "read/machine/pyenv/scan.h"

#define MAPS_MAX	(16u << 20)
#define ENVIRON_MAX	(1u << 20)
#define LIBRARIES_MAX	4096

static const char *process_file(struct py_process *p, pid_t pid, const char *name)
{
	return pool_printf(&p->pool, "/proc/%d/%s", (int)pid, name);
}

static const char *process_link(struct py_process *p, const char *root, const char *path)
{
	char target[TREE_PATH_MAX];
	ssize_t n = readlink(pool_printf(&p->pool, "%s%s", root, path), target, sizeof(target) - 1);

	return n > 0 ? pool_copy(&p->pool, target, (size_t)n) : NULL;
}

static bool is_cuda_name(const char *name)
{
	static const char *const starts[] = {"libcu", "libnv", "libnccl", "libtorch", "libc10", "libcaffe2", NULL};

	for (const char *const *s = starts; *s; s++)
		if (str_starts(name, *s))
			return true;
	return false;
}

static bool library_is_listed(const struct py_process *p, const char *path, bool deleted)
{
	for (size_t i = p->n_libraries; i-- > 0;)	/* parts of one file are adjacent */
		if (p->library[i].deleted == deleted && strcmp(p->library[i].path, path) == 0)
			return true;
	return false;
}

static void library_add(struct py_process *p, char *path)
{
	bool deleted = str_ends(path, " (deleted)");
	const char *name;

	if (deleted)
		path[strlen(path) - strlen(" (deleted)")] = '\0';
	if (library_is_listed(p, path, deleted))
		return;
	if (p->n_libraries == LIBRARIES_MAX) {
		p->cut = true;
		return;
	}
	path = pool_strdup(&p->pool, path);
	name = strrchr(path, '/') + 1;
	p->library[p->n_libraries++] = (struct process_library){
		.path = path, .name = name, .deleted = deleted, .version = library_version(&p->pool, name),
		.cuda = is_cuda_name(name),
	};
}

/* "7f..-7f.. r-xp 00000000 08:01 1234   /path": only files with code, not data files and devices. */
static void maps_read_line(struct py_process *p, char *line)
{
	char *path = strchr(line, '/');
	unsigned long from, to;
	char perms[5];

	if (!path || sscanf(line, "%lx-%lx %4s", &from, &to, perms) != 3 || perms[2] != 'x')
		return;
	if (!str_starts(path, "/dev/") && !str_starts(path, "/memfd:"))
		library_add(p, path);
}

static void process_read_maps(struct py_process *p, const char *root, pid_t pid)
{
	struct buf b;
	char *line, *next;
	int rc;

	buf_init(&b, MAPS_MAX);
	rc = tree_read(root, process_file(p, pid, "maps"), &b);
	p->known = rc == 0;
	p->cut = b.full;
	if (rc == -ENOENT || rc == -ESRCH)
		p->reason = "no such process";
	else if (rc)
		p->reason = pool_printf(&p->pool, "%s", strerror(-rc));
	else if (b.len == 0)
		p->reason = "it has no memory: a kernel thread, or it has ended";
	p->known = p->known && b.len > 0;
	p->library = pool_alloc(&p->pool, LIBRARIES_MAX * sizeof(*p->library));
	for (line = b.data; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		maps_read_line(p, line);
	}
	buf_release(&b);
}

static void process_read_environ(struct py_process *p, const char *root, pid_t pid)
{
	struct buf b;
	size_t n = 0;
	int rc;

	buf_init(&b, ENVIRON_MAX);
	rc = tree_read(root, process_file(p, pid, "environ"), &b);
	if (rc) {
		p->environ_reason = pool_printf(&p->pool, "%s", strerror(-rc));
		buf_release(&b);
		return;
	}
	for (size_t i = 0; i < b.len; i++)
		n += b.data[i] == '\0';
	p->environ = pool_alloc(&p->pool, (n + 2) * sizeof(*p->environ));
	for (size_t i = 0; i < b.len; i += strlen(b.data + i) + 1)
		if (strchr(b.data + i, '='))
			p->environ[p->n_environ++] = pool_strdup(&p->pool, b.data + i);
	buf_release(&b);
}

void py_process_read(struct py_process *out, const char *root, pid_t pid)
{
	*out = (struct py_process){0};
	process_read_maps(out, root, pid);
	if (!out->known)
		return;
	out->exe = process_link(out, root, process_file(out, pid, "exe"));
	out->cwd = process_link(out, root, process_file(out, pid, "cwd"));
	process_read_environ(out, root, pid);
}

void py_process_release(struct py_process *p)
{
	pool_release(&p->pool);
	*p = (struct py_process){0};
}
