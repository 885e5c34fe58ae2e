/* SPDX-License-Identifier: Apache-2.0
 * Opens the recording of one process and looks things up in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "formats/demangle.h"
#include "input/recording/trace_priv.h"
#include "base/banned.h"

#define FILE_MAX ((size_t)1 << 30)	/* recordings are bounded at 64 MiB by default */

#define LAYOUT_MAX 4096			/* parameters of one kernel; CUDA allows 32 KiB of them */

/* `len` bytes at `off`, aligned to `align`; NULL when they are not all there. */
static const void *slice(const struct trace *t, size_t off, size_t len, size_t align)
{
	if (off == 0 || off % align || off > t->len || len > t->len - off)
		return NULL;
	return t->data + off;
}

struct trace *trace_from_bytes(void *bytes, size_t len, struct err *e)
{
	struct trace *t = xcalloc(1, sizeof(*t));

	t->data = bytes;	/* ownership moves here */
	t->len = len;
	if (trace_read_header(t, e) != 0) {
		trace_free(t);
		return NULL;
	}
	trace_read_chunks(t);
	trace_read_failures(t);
	return t;
}

/* Reads at most FILE_MAX bytes into fresh memory. calloc and SEEK_DATA keep holes free of cost. */
static void *read_file(int fd, size_t *len, struct err *e)
{
	struct stat st;
	uint8_t *data;
	off_t at = 0;
	ssize_t n;

	if (fstat(fd, &st) != 0) {
		err_set(e, -errno, "cannot be read: %s", strerror(errno));
		return NULL;
	}
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > FILE_MAX) {
		err_set(e, -EFBIG, "not a cuwhy recording: %s",
			S_ISREG(st.st_mode) ? "larger than 1 GiB" : "not a regular file");
		return NULL;
	}
	*len = (size_t)st.st_size;
	data = xcalloc(1, *len);
	while ((at = lseek(fd, at, SEEK_DATA)) >= 0 && (size_t)at < *len) {
		n = pread(fd, data + at, *len - (size_t)at, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		at += n;
	}
	return data;
}

struct trace *trace_open(const char *path, struct err *e)
{
	struct err inner = {0};
	struct trace *t = NULL;
	size_t len = 0;
	void *data;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		err_set(e, -errno, "cannot open '%s': %s", path, strerror(errno));
		return NULL;
	}
	data = read_file(fd, &len, &inner);
	close(fd);
	if (data)
		t = trace_from_bytes(data, len, &inner);
	if (!t) {
		err_set(e, inner.code, "'%s': %s", path, inner.msg);
		err_hint(e, "%s", inner.hint);
	}
	return t;
}

void trace_free(struct trace *t)
{
	size_t i;

	if (!t)
		return;
	for (i = 0; i < t->n_names; i++)
		free(t->names[i]);
	free(t->names);
	free(t->failures.item);
	free(t->launches.item);
	free(t->calls.item);
	free(t->allocations.item);
	free(t->blocks.item);
	free(t->freed.item);
	trace_free_memory(t);
	free(t->failure);
	free(t->data);
	free(t);
}

const struct cw_header *trace_header(const struct trace *t)
{
	return &t->header;
}

const char *trace_string(const struct trace *t, uint32_t off)
{
	const struct cw_string *s = slice(t, off, sizeof(*s), 4);
	const char *text;

	if (!s || s->len >= t->len)
		return "";
	text = slice(t, off + sizeof(*s), (size_t)s->len + 1, 1);
	/* The NUL may be missing when the writer was killed half-way. */
	return text && text[s->len] == '\0' ? text : "";
}

const struct cw_stack *trace_stack(const struct trace *t, uint32_t off)
{
	const struct cw_stack *s = slice(t, off, sizeof(*s), 4);

	if (!s || s->n == 0 || s->n > CW_MAX_FRAMES)
		return NULL;
	return slice(t, off, sizeof(*s) + s->n * sizeof(s->frame[0]), 4);
}

const struct cw_function *trace_function(const struct trace *t, uint32_t index)
{
	const struct cw_function *f;
	size_t i, n, first = 0;

	for (i = 0; index && i < t->n_chunks; i++) {
		if (t->chunk[i].kind != CW_CHUNK_FUNCTIONS)
			continue;
		n = t->chunk[i].len / sizeof(*f);
		if (index - first < n) {
			f = (const struct cw_function *)(t->data + t->chunk[i].off);
			f += index - first;
			return f->handle || f->name ? f : NULL;
		}
		first += n;
	}
	return NULL;
}

const struct cw_layout *trace_layout(const struct trace *t, const struct cw_function *f)
{
	const struct cw_layout *l = f ? slice(t, f->layout, sizeof(*l), 4) : NULL;

	if (!l || l->n > LAYOUT_MAX)
		return NULL;
	return slice(t, f->layout, sizeof(*l) + l->n * sizeof(l->param[0]), 4);
}

const char *trace_function_name(struct trace *t, uint32_t index)
{
	const struct cw_function *f = trace_function(t, index);
	const char *mangled = f ? trace_string(t, f->name) : "";
	size_t old = t->n_names;

	if (!*mangled)
		return "";
	if (index >= t->n_names) {
		t->n_names = (size_t)index + 64;
		t->names = xrealloc(t->names, t->n_names, sizeof(*t->names));
		memset(t->names + old, 0, (t->n_names - old) * sizeof(*t->names));
	}
	if (!t->names[index]) {
		t->names[index] = demangle(mangled);
		if (!t->names[index])
			t->names[index] = xstrdup(mangled);
	}
	return t->names[index];
}

size_t trace_failures(const struct trace *t, const struct cw_failure *const **list)
{
	*list = (const struct cw_failure *const *)t->failures.item;
	return t->failures.n;
}

static long double ns_per_tick(const struct trace *t)
{
	const struct cw_clock *a = &t->header.clock0, *b = &t->header.clock1;

	if (b->ticks > a->ticks && b->mono_ns > a->mono_ns)
		return (long double)(b->mono_ns - a->mono_ns) / (b->ticks - a->ticks);
	return 1.0L;
}

uint64_t trace_ns(const struct trace *t, uint64_t ticks)
{
	uint64_t start = t->header.clock0.ticks;
	long double ns = ticks <= start ? 0 : (ticks - start) * ns_per_tick(t);

	return ns < 9.2e18L ? (uint64_t)ns : UINT64_MAX;
}

uint64_t trace_ticks(const struct trace *t, uint64_t ns)
{
	long double ticks = t->header.clock0.ticks + ns / ns_per_tick(t);

	return ticks < 9.2e18L ? (uint64_t)ticks : UINT64_MAX;
}
