/* SPDX-License-Identifier: Apache-2.0
 * Writes a snapshot of PyTorch's allocator as the dictionary that PyTorch's own tools read (see torchsnap.h).
 */
#include <stdlib.h>
#include <string.h>

#include "show/pickle_write.h"
#include "base/mem.h"
#include "base/private.h"
#include "base/str.h"
#include "show/torchsnap.h"
#include "read/recording/trace.h"

static void put_key_text(struct pickle *p, const char *key, const char *value)
{
	pickle_text(p, key);
	pickle_text(p, value);
}

static void put_key_uint(struct pickle *p, const char *key, uint64_t value)
{
	pickle_text(p, key);
	pickle_uint(p, value);
}

static void put_key_bool(struct pickle *p, const char *key, bool value)
{
	pickle_text(p, key);
	pickle_bool(p, value);
}

#define KEY_STACK	(1ull << 63)	/* tells stacks from frames among the keys of shared objects */

static void write_frame(const struct trace *t, const struct cw_frame *f, struct pickle *p)
{
	char *file;

	if (!pickle_shared_dict(p, (struct pickle_key){(uint64_t)f->file << 32 | f->function, f->line}))
		return;
	put_key_text(p, "name", trace_string(t, f->function));
	file = private_hide_homes(xstrdup(trace_string(t, f->file)), NULL);
	put_key_text(p, "filename", file);
	free(file);
	put_key_uint(p, "line", f->line);
	pickle_dict_end(p);
}

/* Innermost first, in both formats. */
static void put_frames(struct pickle *p, const struct trace *t, uint32_t stack)
{
	const struct cw_stack *s = trace_stack(t, stack);

	pickle_text(p, "frames");
	if (!pickle_shared_list(p, (struct pickle_key){s ? stack : 0, KEY_STACK}))
		return;
	for (uint32_t i = 0; s && i < s->n; i++)
		write_frame(t, &s->frame[i], p);
	pickle_list_end(p);
}

static void write_block(const struct trace *t, uint64_t addr, uint64_t size, uint32_t stack, bool live,
			struct pickle *p)
{
	pickle_dict(p);
	put_key_uint(p, "address", addr);
	put_key_uint(p, "size", size);
	put_key_uint(p, "requested_size", live ? size : 0);
	put_key_text(p, "state", live ? "active_allocated" : "inactive");
	put_frames(p, t, stack);
	pickle_dict_end(p);
}

/* Every byte of a segment is in one of its blocks: the gaps are free blocks. */
static void write_blocks(const struct torchsnap *s, const struct torchsnap_segment *g, const struct trace *t,
			 struct pickle *p)
{
	uint64_t from = g->addr, end = g->addr + g->size;

	pickle_text(p, "blocks");
	pickle_list(p);
	for (size_t i = g->first; i < g->first + g->n; i++) {
		const struct torchsnap_block *b = &s->block[i];

		pickle_list_item(p, i - g->first);
		if (b->addr > from)
			write_block(t, from, b->addr - from, 0, false, p);
		write_block(t, b->addr, b->size, b->stack, true, p);
		from = b->addr + b->size;
	}
	if (from < end)
		write_block(t, from, end - from, 0, false, p);
	pickle_list_end(p);
}

static void write_segment(const struct torchsnap *s, const struct torchsnap_segment *g, const struct trace *t,
			  struct pickle *p)
{
	pickle_dict(p);
	put_key_uint(p, "device", (uint64_t)g->device);
	put_key_uint(p, "address", g->addr);
	put_key_uint(p, "total_size", g->size);
	put_key_uint(p, "allocated_size", g->allocated);
	put_key_uint(p, "active_size", g->allocated);
	put_key_uint(p, "requested_size", g->allocated);
	put_key_uint(p, "stream", 0);
	put_key_text(p, "segment_type", g->small ? "small" : "large");
	pickle_text(p, "segment_pool_id");
	pickle_uint(p, 0);
	pickle_uint(p, 0);
	pickle_pair_end(p);
	put_key_bool(p, "is_expandable", g->expandable);
	put_frames(p, t, g->stack);
	write_blocks(s, g, t, p);
	pickle_dict_end(p);
}

static void write_event(const struct torchsnap_event *v, const struct trace *t, struct pickle *p)
{
	static const char *const action[] = {
#define X(name, text) text,
		TORCHSNAP_ACTIONS(X)
#undef X
	};

	pickle_dict(p);
	put_key_text(p, "action", action[v->action]);
	put_key_uint(p, v->action == TORCHSNAP_OOM ? "device_free" : "addr", v->addr);
	put_key_uint(p, "size", v->size);
	put_key_uint(p, "stream", 0);
	put_key_uint(p, "time_us", (trace_header(t)->start_realtime_ns + trace_ns(t, v->ticks)) / 1000);
	put_frames(p, t, v->stack);
	pickle_dict_end(p);
}

static void write_traces(const struct torchsnap *s, const struct trace *t, struct pickle *p)
{
	pickle_text(p, "device_traces");
	pickle_list(p);
	for (int d = 0; d < s->n_devices; d++) {
		size_t n = 0;

		pickle_list(p);
		for (size_t i = 0; i < s->n_events; i++) {
			if (s->event[i].device != d)
				continue;
			pickle_list_item(p, n++);
			write_event(&s->event[i], t, p);
		}
		pickle_list_end(p);
	}
	pickle_list_end(p);
}

/* The value of `key:` in the comma-separated settings, "" if it is missing. */
static const char *setting(const char *conf, const char *key)
{
	size_t n = strlen(key);

	while (*conf) {
		conf += strspn(conf, " ,");
		if (strncmp(conf, key, n) == 0 && conf[n + strspn(conf + n, " ")] == ':') {
			conf += n + strspn(conf + n, " ") + 1;
			return conf + strspn(conf, " ");
		}
		conf += strcspn(conf, ",");
	}
	return "";
}

/* Only what the environment said; the program may have changed it since. */
static void write_settings(const struct trace *t, struct pickle *p)
{
	const char *conf = trace_header(t)->alloc_conf, *split;

	if (strcmp(conf, CW_NOT_SET) == 0)
		conf = "";
	split = setting(conf, "max_split_size_mb");
	pickle_text(p, "allocator_settings");
	pickle_dict(p);
	put_key_text(p, "PYTORCH_CUDA_ALLOC_CONF", conf);
	pickle_text(p, "max_split_size");
	pickle_int(p, *split ? (int64_t)(strtoull(split, NULL, 10) & 0xffffffffff) << 20 : -1);
	pickle_text(p, "garbage_collection_threshold");
	pickle_float(p, strtod(setting(conf, "garbage_collection_threshold"), NULL));
	put_key_bool(p, "expandable_segments", str_starts(setting(conf, "expandable_segments"), "True"));
	pickle_dict_end(p);
}

void torchsnap_write(const struct torchsnap *s, const struct trace *t, struct pickle *p)
{
	pickle_dict(p);
	pickle_text(p, "segments");
	pickle_list(p);
	for (size_t i = 0; i < s->n_segments; i++) {
		pickle_list_item(p, i);
		write_segment(s, &s->segment[i], t, p);
	}
	pickle_list_end(p);
	write_traces(s, t, p);
	write_settings(t, p);
	pickle_text(p, "external_annotations");
	pickle_list(p);
	pickle_list_end(p);
	pickle_dict_end(p);
}
