/* SPDX-License-Identifier: Apache-2.0
 * A growable byte buffer with a ceiling.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){.max = max};
	b->data = xcalloc(1, 1);
	b->cap = 1;
}

void buf_release(struct buf *b)
{
	free(b->data);
	*b = (struct buf){0};
}

static void reserve(struct buf *b, size_t want)
{
	size_t cap = b->cap;

	if (want <= cap)
		return;
	while (cap < want)
		cap = cap < 64 ? 64 : cap * 2;
	b->data = xrealloc(b->data, cap, 1);
	b->cap = cap;
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
	if (n > b->max - b->len) {
		n = b->max - b->len;
		b->full = true;
	}
	reserve(b, b->len + n + 1);
	if (n)
		memcpy(b->data + b->len, bytes, n);
	b->len += n;
	b->data[b->len] = '\0';
}

void buf_adds(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list args;
	char *s;

	va_start(args, fmt);
	s = xvasprintf(fmt, args);
	va_end(args);
	buf_adds(b, s);
	free(s);
}

char *buf_take(struct buf *b)
{
	char *data = b->data;

	*b = (struct buf){0};
	return data;
}

int buf_read_fd(struct buf *b, int fd)
{
	char chunk[16384];
	ssize_t n;

	while (!b->full) {
		n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		buf_add(b, chunk, (size_t)n);
	}
	return -EFBIG;
}
