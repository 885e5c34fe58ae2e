/* SPDX-License-Identifier: Apache-2.0
 * The host's facts as JSON and back: made from the rows of host.def, so that no field can be forgotten.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "input/machine/host_priv.h"
#include "base/banned.h"

static json_t *field_to_json(const void *base, const struct host_field *f)
{
	const char *at = (const char *)base + f->offset;
	int64_t n;
	int flag;

	if (f->kind == HOST_TEXT)
		return *(const char *const *)(const void *)at ? json_string(*(const char *const *)(const void *)at) : NULL;
	if (f->kind == HOST_FLAG) {
		flag = *(const int *)(const void *)at;
		return flag < 0 ? NULL : json_boolean(flag);
	}
	n = *(const int64_t *)(const void *)at;
	return n < 0 ? NULL : n == HOST_UNLIMITED ? json_string("unlimited") : json_integer(n);
}

static json_t *group_of(json_t *o, const char *name)
{
	json_t *group = json_object_get(o, name);

	if (!group) {
		group = json_object();
		json_object_set_new(o, name, group);
	}
	return group;
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
	json_t *o = json_object(), *value, *list, *item;

	for (size_t i = 0; i < host_n_fields; i++) {
		json_t *group = group_of(o, host_fields[i].group);

		value = field_to_json(h, &host_fields[i]);
		if (value)
			json_object_set_new(group, host_fields[i].name, value);
	}
	for (size_t k = 0; k < HOST_LISTS; k++) {
		const struct host_list *l = &host_lists[k];
		const char *array = *(const char *const *)(const void *)((const char *)h + l->at);
		ptrdiff_t n = *(const ptrdiff_t *)(const void *)((const char *)h + l->at_n);

		if (n < 0)
			continue;
		list = json_array();
		for (ptrdiff_t i = 0; i < n; i++) {
			item = json_object();
			for (size_t f = 0; f < l->n_fields; f++) {
				value = field_to_json(array + (size_t)i * l->size, &l->field[f]);
				if (value)
					json_object_set_new(item, l->field[f].name, value);
			}
			json_array_append_new(list, item);
		}
		json_object_set_new(o, l->name, list);
	}
	json_object_set_new(o, "xids", xids_to_json(&h->xids));
	return o;
}

/* ---- and back ------------------------------------------------------------------------------------------------ */

static void field_from_json(void *base, const struct host_field *f, struct pool *pool, const json_t *value)
{
	char *at = (char *)base + f->offset, *text;
	const char *s = json_string_value(value);

	if (f->kind == HOST_TEXT && s && strlen(s) <= LOOK_TEXT_MAX) {
		text = pool_strdup(pool, s);
		for (char *c = text; *c; c++)
			if ((unsigned char)*c < ' ' || *c == 127)
				*c = ' ';
		*(const char **)(void *)at = text;
	} else if (f->kind == HOST_FLAG && json_is_boolean(value)) {
		*(int *)(void *)at = json_is_true(value);
	} else if (f->kind == HOST_NUM && json_is_integer(value) && json_integer_value(value) >= 0) {
		*(int64_t *)(void *)at = json_integer_value(value);
	} else if (f->kind == HOST_NUM && s && strcmp(s, "unlimited") == 0) {
		*(int64_t *)(void *)at = HOST_UNLIMITED;
	}
}

static void list_from_json(struct host *h, struct pool *pool, enum host_list_id id, const json_t *list)
{
	const struct host_list *l = &host_lists[id];
	const json_t *item;
	void *element;
	size_t i, f;

	if (json_is_array(list))
		host_looked(h, id);
	json_array_foreach(list, i, item) {
		element = json_is_object(item) ? host_add(h, pool, id) : NULL;
		for (f = 0; element && f < l->n_fields; f++)
			field_from_json(element, &l->field[f], pool, json_object_get(item, l->field[f].name));
	}
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
	host_unknown(h);
	if (!json_is_object(o))
		return false;
	for (size_t i = 0; i < host_n_fields; i++)
		field_from_json(h, &host_fields[i], pool, json_object_get(json_object_get(o, host_fields[i].group), host_fields[i].name));
	for (int k = 0; k < HOST_LISTS; k++)
		list_from_json(h, pool, (enum host_list_id)k, json_object_get(o, host_lists[k].name));
	xids_from_json(&h->xids, json_object_get(o, "xids"));
	h->xids.readable = h->log.readable == 1;
	h->xids.lost = h->log.lost == 1;
	return true;
}
