/* SPDX-License-Identifier: Apache-2.0
 * What can be known about a machine from its files (see host.h): all subjects, one after the other.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "input/machine/host_priv.h"
#include "base/banned.h"

void host_collect(struct host *h, struct pool *pool, const struct host_from *from)
{
	struct looking l = {.h = h, .pool = pool, .root = from->root, .env = from->env, .cwd = from->cwd, .live = !from->root[0]};

	host_unknown(h);
	l.mounts = look_file(&l, "/proc/self/mountinfo", 4u << 20, NULL);
	host_look_os(&l);
	host_look_kernel(&l);
	host_look_wsl(&l);
	host_look_container(&l);
	host_look_pci(&l);
	host_look_iommu(&l);
	host_look_nodes(&l);
	host_look_mig(&l);
	host_look_libraries(&l);
	host_look_daemons(&l);
	host_look_memory(&l);
	host_look_toolkits(&l);
	host_look_compilers(&l);
	host_look_builds(&l);
	host_look_log(&l);
	host_looked(h, HOST_LIST_gap);
}

const struct host_node *host_node(const struct host *h, const char *path)
{
	for (ptrdiff_t i = 0; i < h->n_node; i++)
		if (h->node[i].path && strcmp(h->node[i].path, path) == 0)
			return &h->node[i];
	return NULL;
}

const struct host_library *host_library(const struct host *h, const char *name, const char *kind)
{
	for (ptrdiff_t i = 0; i < h->n_library; i++)
		if (h->library[i].name && strcmp(h->library[i].name, name) == 0 &&
		    (!kind || (h->library[i].kind && strcmp(h->library[i].kind, kind) == 0)))
			return &h->library[i];
	return NULL;
}

const struct host_event *host_event(const struct host *h, const char *id)
{
	for (ptrdiff_t i = 0; i < h->n_event; i++)
		if (h->event[i].id && strcmp(h->event[i].id, id) == 0)
			return &h->event[i];
	return NULL;
}

static bool is_version(const char *s)
{
	return s && isdigit((unsigned char)*s);
}

int host_version_compare(const char *a, const char *b)
{
	unsigned long long x, y;
	char *end_a, *end_b;

	if (!is_version(a) || !is_version(b))
		return is_version(a) - is_version(b);
	for (;;) {
		x = strtoull(a, &end_a, 10);
		y = strtoull(b, &end_b, 10);
		if (x != y)
			return x < y ? -1 : 1;
		a = *end_a == '.' ? end_a + 1 : "";
		b = *end_b == '.' ? end_b + 1 : "";
		if (!is_version(a) || !is_version(b))
			return is_version(a) - is_version(b);
	}
}
