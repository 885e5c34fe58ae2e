/* SPDX-License-Identifier: Apache-2.0
 * What can be known about a machine from its files (see host.h): the rows of host.def as tables, lists that grow, JSON; and all
 * subjects, one after the other.
 */
#include "read/machine/host.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "read/machine/look.h"

#define GROUP(group)		static const struct field group##_field[] = {
#define LIST(list)		static const struct field list##_field[] = {
#define END(of)			F_END}; static const struct fields of##_fields = {of##_field, sizeof(struct host_##of), NULL};
#define FLAG(of, name, what)	F_FLAG(struct host_##of, name),
#define NUM(of, name, what)	F_LIMIT(struct host_##of, name),
#define TEXT(of, name, what)	F_LINE(struct host_##of, name),
#include "read/machine/host.def"

/* By enum host_part. */
static const struct field host_field[] = {
#define GROUP(group)		F_GROUP(struct host, group, group##_fields),
#define LIST(list)		F_KNOWN_LIST(struct host, #list, list, n_##list, list##_fields),
#include "read/machine/host.def"
	F_END};
static const struct fields host_fields = {host_field, sizeof(struct host), NULL};

_Static_assert(HOST_UNLIMITED == INT64_MAX, "what a limit of a table is");

void host_unknown(struct host *h)
{
	fields_init(&host_fields, h);
}

static ptrdiff_t *list_count(struct host *h, const struct field *list)
{
	return (ptrdiff_t *)(void *)((char *)h + list->count);
}

void host_looked(struct host *h, enum host_part list)
{
	ptrdiff_t *n = list_count(h, &host_field[list]);

	if (*n < 0)
		*n = 0;
}

void *host_add(struct host *h, struct pool *pool, enum host_part list)
{
	const struct field *f = &host_field[list];
	void **array = (void **)(void *)((char *)h + f->at);
	ptrdiff_t *n = list_count(h, f);
	void *bigger;
	char *element;

	if (*n >= HOST_LIST_MAX)
		return NULL;
	if (*n < 0)
		*n = 0;
	if ((*n & (*n - 1)) == 0) {	/* full at every power of two */
		bigger = pool_alloc(pool, (size_t)(*n ? *n * 2 : 1) * f->inner->size);
		if (*n)
			memcpy(bigger, *array, (size_t)*n * f->inner->size);
		*array = bigger;
	}
	element = (char *)*array + (size_t)*n * f->inner->size;
	fields_init(f->inner, element);
	++*n;
	return element;
}

static json_t *xids_to_json(const struct xid_log *log)
{
	json_t *list = json_array();
	char uuid[33], line[128];

	for (size_t i = 0; i < log->n_gpus; i++) {
		for (size_t k = 0; k < 16; k++)
			snprintf(uuid + 2 * k, 3, "%02x", log->gpu[i].uuid[k]);
		snprintf(line, sizeof(line), "GPU at PCI:%s: GPU-%s", log->gpu[i].pci, uuid);
		json_array_append_new(list, json_string(line));
	}
	for (size_t i = 0; i < log->n; i++) {
		char text[sizeof(log->line[i].text)];

		memcpy(text, log->line[i].text, sizeof(text));
		str_make_utf8(text);
		json_array_append_new(list, json_string(text));
	}
	return list;
}

json_t *host_to_json(const struct host *h)
{
	json_t *o = fields_write(&host_fields, h);

	json_object_set_new(o, "xids", xids_to_json(&h->xids));
	return o;
}

static void xids_from_json(struct xid_log *log, const json_t *list)
{
	char line[sizeof(log->line[0].text) + 8];
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item) {
		const char *s = json_string_value(item);

		snprintf(line, sizeof(line), "NVRM: %s", s ? s : "");
		xid_line(log, line, false);
	}
}

bool host_from_json(struct host *h, struct pool *pool, const json_t *o)
{
	fields_read_fitting(&host_fields, o, h, pool);
	if (!json_is_object(o))
		return false;
	for (const struct field *f = host_field; f->key; f++)
		if (f->kind == FIELD_LIST && *list_count(h, f) > HOST_LIST_MAX)
			*list_count(h, f) = HOST_LIST_MAX;
	xids_from_json(&h->xids, json_object_get(o, "xids"));
	h->xids.readable = h->log.readable == 1;
	h->xids.lost = h->log.lost == 1;
	return true;
}

const struct host_node *host_node(const struct host *h, const char *path)
{
	for (ptrdiff_t i = 0; i < h->n_node; i++)
		if (h->node[i].path && strcmp(h->node[i].path, path) == 0)
			return &h->node[i];
	return NULL;
}

const struct host_event *host_event(const struct host *h, const char *id)
{
	for (ptrdiff_t i = 0; i < h->n_event; i++)
		if (h->event[i].id && strcmp(h->event[i].id, id) == 0)
			return &h->event[i];
	return NULL;
}

bool host_told(const struct host *h, const char *what)
{
	for (ptrdiff_t i = 0; i < h->n_gap; i++)
		if (h->gap[i].what && str_starts(h->gap[i].what, what))
			return false;
	return true;
}

static bool begins_a_version(const char *s)
{
	return s && isdigit((unsigned char)*s);
}

int host_version_compare(const char *a, const char *b)
{
	unsigned long long x, y;
	char *end_a, *end_b;

	if (!begins_a_version(a) || !begins_a_version(b))
		return begins_a_version(a) - begins_a_version(b);
	for (;;) {
		x = strtoull(a, &end_a, 10);
		y = strtoull(b, &end_b, 10);
		if (x != y)
			return x < y ? -1 : 1;
		a = *end_a == '.' ? end_a + 1 : "";
		b = *end_b == '.' ? end_b + 1 : "";
		if (!begins_a_version(a) || !begins_a_version(b))
			return begins_a_version(a) - begins_a_version(b);
	}
}

void host_collect(struct host *h, struct pool *pool, const struct host_from *from)
{
	struct looking l = {
		.h = h, .pool = pool, .root = from->root, .env = from->env, .cwd = from->cwd, .live = !from->root[0]};

	host_unknown(h);
	l.mounts = look_file(&l, "/proc/self/mountinfo", 4u << 20, NULL);
	host_look_os(&l);
	host_look_modules(&l);
	host_look_container(&l);
	host_look_pci(&l);
	host_look_nodes(&l);
	host_look_libraries(&l);
	host_look_daemons(&l);
	host_look_memory(&l);
	host_look_tools(&l);
	host_look_log(&l);
	host_looked(h, HOST_LIST_gap);
}
