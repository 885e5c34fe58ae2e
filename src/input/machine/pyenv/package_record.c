/* SPDX-License-Identifier: Apache-2.0
 * RECORD files: which files a package consists of, whether its libraries are all there, and whose a file is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/tree.h"
#include "formats/elf_file.h"
#include "input/machine/pyenv/pyenv_priv.h"
#include "base/banned.h"

#define RECORDS_MAX	(128u << 20)	/* bytes of all of them together */
#define FILES_MAX	20000

const struct record *env_record(struct env_work *w, size_t package)
{
	struct record *r = &w->record[package];
	const struct py_package *p = &w->e->package[package];

	if (r->read)
		return r;
	r->read = true;
	if (p->source != PY_DIST_INFO || w->record_bytes > RECORDS_MAX)
		return r;
	r->text = scan_text(w->s, scan_join(w->s, p->info, "RECORD"), RECORD_MAX, &r->len);
	w->record_bytes += r->text ? r->len : 0;
	return r;
}

/* A shared library by its name: "x.so", "libx.so.12", "x.cpython-311-x86_64-linux-gnu.so". */
static bool is_library(const char *path, size_t len)
{
	const char *so = memmem(path, len, ".so", 3), *end = path + len;

	while (so && so + 3 < end && so[3] != '.')
		so = memmem(so + 3, (size_t)(end - so) - 3, ".so", 3);
	return so && strspn(so + 3, ".0123456789") == (size_t)(end - so) - 3;
}

/* Another size alone proves nothing: some distributions strip or patch libraries after they were installed. */
static bool is_damaged(struct env_work *w, const char *path)
{
	struct elf_file f;

	if (elf_open(&f, w->s->pool, w->s->root, path, 0) != 0)
		return false;
	elf_close(&f);
	return f.broken != NULL;
}

/* "path,sha256=...,size" of one line; a path in quotes has a comma in it, and no library has. */
static void check_line(struct env_work *w, struct py_package *p, const char *line, size_t len)
{
	const char *comma = memchr(line, ',', len), *size = memrchr(line, ',', len), *path;
	uint64_t want = 0;
	struct stat st;
	char number[24];
	int rc;

	if (!comma || line[0] == '"' || !is_library(line, (size_t)(comma - line)))
		return;
	p->n_files++;
	path = pool_printf(w->s->pool, "%s/%.*s", p->folder, (int)(comma - line), line);
	rc = tree_stat(w->s->root, path, &st);
	len -= (size_t)(size - line) + 1;
	if (len && size[len] == '\r')
		len--;
	if (size == comma || len >= sizeof(number))
		len = 0;
	memcpy(number, size + 1, len);
	number[len] = '\0';
	if (rc == -ENOENT || rc == -ENOTDIR)
		p->n_missing++;
	else if (rc == 0 && len && str_u64(number, &want) && want != (uint64_t)st.st_size && is_damaged(w, path))
		p->n_cut++;
	else
		return;
	if (!p->missing)
		p->missing = path;
}

static void check_record(struct env_work *w, size_t package)
{
	struct py_package *p = &w->e->package[package];
	const struct record *r = env_record(w, package);
	const char *at = r->text;

	if (!at) {
		if (!p->reason)
			p->reason = "RECORD is missing or cannot be read: half installed, or not installed by pip";
		return;
	}
	p->n_files = 0;
	p->n_missing = 0;
	while (*at && p->n_files < FILES_MAX) {
		size_t len = strcspn(at, "\n");

		check_line(w, p, at, len);
		at += len + (at[len] == '\n');
	}
}

void env_check_records(struct env_work *w)
{
	for (size_t i = 0; i < w->e->n_packages; i++)
		if (w->e->package[i].watched && w->e->package[i].source == PY_DIST_INFO)
			check_record(w, i);
}

static bool record_names(const struct record *r, const char *file)
{
	size_t n = strlen(file);

	for (const char *p = r->text; p && (p = strstr(p, file)); p += n)
		if ((p == r->text || p[-1] == '\n') && p[n] == ',')
			return true;
	return false;
}

/* Watched packages first: their RECORDs have been read already. */
int env_owner(struct env_work *w, const char *path)
{
	for (int watched = 1; watched >= 0; watched--)
		for (size_t i = 0; i < w->e->n_packages; i++) {
			const struct py_package *p = &w->e->package[i];
			size_t n = strlen(p->folder);

			if (p->watched != (bool)watched || p->source != PY_DIST_INFO || strncmp(path, p->folder, n) != 0 ||
			    path[n] != '/')
				continue;
			if (record_names(env_record(w, i), path + n + 1))
				return (int)i;
		}
	return -1;
}
