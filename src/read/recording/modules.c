/* SPDX-License-Identifier: Apache-2.0
 * Modules and their paths, from a recording (see modules.h).
 */
#include "read/recording/modules.h"

#include <string.h>

#include "base/str.h"

#define DEPTH_MAX	64u

size_t trace_modules(const struct trace *t)
{
	size_t len;

	return trace_chunk(t, CW_CHUNK_MODULES, &len) ? len / sizeof(struct cw_module) : 0;
}

static const struct cw_module *module_at(const struct trace *t, uint32_t number)
{
	size_t len;
	const struct cw_module *m = trace_chunk(t, CW_CHUNK_MODULES, &len);

	return m && number && number < len / sizeof(*m) && m[number].class_name ? &m[number] : NULL;
}

uint32_t trace_site_module(const struct trace *t, size_t site)
{
	size_t len;
	const uint16_t *m = trace_chunk(t, CW_CHUNK_SITE_MODULES, &len);

	return m && site < len / sizeof(*m) && m[site] < trace_modules(t) ? m[site] : 0;
}

static const char *text(const struct trace *t, uint32_t off, struct pool *pool)
{
	char *s = pool_strdup(pool, trace_string(t, off));

	str_make_utf8(s);
	str_make_line(s);
	return s;
}

/* What PyTorch puts around a module is not in its author's path. */
static bool is_wrapper(const char *name, const char *class_of_parent)
{
	static const char *const names[] = {"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"},
				 *const classes[] = {"DistributedDataParallel", "DataParallel",
						     "FullyShardedDataParallel"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	for (size_t i = 0; !strcmp(name, "module") && i < sizeof(classes) / sizeof(classes[0]); i++)
		if (!strcmp(class_of_parent, classes[i]))
			return true;
	return false;
}

/* A name may have several parts: "h.7". */
static const char *put_before(const char *name, const char *path, const char *class_of_parent, struct pool *pool)
{
	const char *end = name + strlen(name);

	while (end > name) {
		const char *from = end;
		const char *part;

		while (from > name && from[-1] != '.')
			from--;
		part = pool_copy(pool, from, (size_t)(end - from));
		if (!is_wrapper(part, from == name ? class_of_parent : ""))
			path = *path ? pool_printf(pool, "%s.%s", part, path) : part;
		end = from > name ? from - 1 : name;
	}
	return path;
}

bool trace_module_path(const struct trace *t, uint32_t module, struct module_path *to, struct pool *pool)
{
	const struct cw_module *m = module_at(t, module), *up;
	const char *path = "";
	uint32_t at = module;

	if (!m)
		return false;
	*to = (struct module_path){.class_name = text(t, m->class_name, pool)};
	for (unsigned i = 0; i < DEPTH_MAX; i++, m = up) {
		if (m->flags & CW_MODULE_UNSURE)
			return false;
		up = module_at(t, m->parent);
		if (!up) {
			if (m->parent)
				return false;
			to->path = path;
			to->root = text(t, m->class_name, pool);
			to->root_number = at;
			return true;
		}
		at = m->parent;
		path = put_before(text(t, m->name, pool), path, text(t, up->class_name, pool), pool);
	}
	return false;
}
