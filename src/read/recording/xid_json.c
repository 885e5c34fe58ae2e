/* SPDX-License-Identifier: Apache-2.0
 * The lines of the kernel log in run.json, and back.
 */
#include "read/recording/xid_json.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "formats/xid.h"

static char *gpu_line(const struct xid_gpu *g)
{
	char id[33];

	for (size_t i = 0; i < 16; i++)
		snprintf(id + 2 * i, 3, "%02x", g->uuid[i]);
	return xasprintf("GPU at PCI:%s: GPU-%s", g->pci, id);
}

json_t *xid_to_json(const struct xid_log *log)
{
	json_t *lines = json_array();
	size_t i;
	char *s;

	for (i = 0; i < log->n_gpus; i++) {
		s = gpu_line(&log->gpu[i]);
		json_array_append_new(lines, json_text(s));
		free(s);
	}
	for (i = 0; i < log->n; i++)
		json_array_append_new(lines, json_text(log->line[i].text));
	for (i = 0; i < log->n_kills; i++)
		json_array_append_new(lines, json_text(log->kill[i].text));
	return JSON_OF(J_BOOL("readable", log->readable), J_BOOL("lost", log->lost), J_VALUE("lines", lines));
}

bool xid_from_json(struct xid_log *log, const json_t *o)
{
	const json_t *line;
	size_t i;
	char *s;

	*log = (struct xid_log){0};
	if (!json_is_object(o))
		return false;
	log->readable = json_is_true(json_object_get(o, "readable"));
	log->lost = json_is_true(json_object_get(o, "lost"));
	json_array_foreach(json_object_get(o, "lines"), i, line) {
		s = xasprintf("NVRM: %s", json_is_string(line) ? json_string_value(line) : "");
		xid_line(log, s, false);
		free(s);
	}
	return true;
}
