/* SPDX-License-Identifier: Apache-2.0
 * Folders of packages that consist of Python text alone (see extension_pure.h).
 *
 * A large environment has tens of thousands of folders and a few hundred RECORDs, which say where no library is.
 */
#include "input/machine/pyenv/extension_pure.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/banned.h"

#define TOPS_MAX 20000

static struct top_folder *find(const struct pure_folders *p, const char *folder, const char *name, size_t len)
{
	for (size_t i = 0; i < p->n; i++) {
		struct top_folder *t = &p->item[i];

		if (t->len == len && memcmp(t->name, name, len) == 0 && strcmp(t->folder, folder) == 0)
			return t;
	}
	return NULL;
}

static void note(struct pure_folders *p, const char *folder, const char *name, size_t len, bool native)
{
	struct top_folder *t = find(p, folder, name, len);

	if (t) {
		t->native |= native;
		return;
	}
	if (p->n >= TOPS_MAX)
		return;
	p->item = xgrow(p->item, p->n, &p->cap, sizeof(*p->item));
	p->item[p->n++] = (struct top_folder){folder, name, len, native};
}

/* The first part of every path in a RECORD; lines of one folder are neighbours. */
static void read_record(struct pure_folders *p, const struct py_package *package, const char *text)
{
	bool native = package->watched || strstr(text, ".so");
	const char *last = "";
	size_t last_len = 0;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t len = strcspn(line, "/,\n");

		if (line[len] != '/' || (len == last_len && memcmp(line, last, len) == 0))
			continue;
		note(p, package->folder, line, len, native);
		last = line;
		last_len = len;
	}
}

void pure_folders_read(struct pure_folders *p, struct env_work *w)
{
	*p = (struct pure_folders){0};
	for (size_t i = 0; i < w->e->n_packages; i++) {
		const struct record *r = env_record(w, i);

		if (r->text)
			read_record(p, &w->e->package[i], r->text);
	}
}

bool pure_folders_has(const struct pure_folders *p, const char *folder, const char *name)
{
	const struct top_folder *t = find(p, folder, name, strlen(name));

	return t && !t->native;
}

void pure_folders_release(struct pure_folders *p)
{
	free(p->item);
	*p = (struct pure_folders){0};
}
