/* SPDX-License-Identifier: Apache-2.0
 * The kernel log, line by line (see klog.h).
 */
#include "formats/klog.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define RECORD_MAX	8192		/* the kernel refuses a smaller buffer */
#define BYTES_MAX	(16u << 20)	/* no log is larger */

/* A read of /dev/kmsg gives one record, a read of a file as much as fits: its last line may be incomplete. */
static size_t take_lines(char *text, size_t len, klog_line_fn *line, void *user)
{
	char *at = text, *end;

	text[len] = '\0';
	while ((end = memchr(at, '\n', len - (size_t)(at - text))) != NULL) {
		*end = '\0';
		line(user, at);
		at = end + 1;
	}
	len -= (size_t)(at - text);
	memmove(text, at, len);
	return len < RECORD_MAX ? len : 0;	/* longer than any line of a log: not one of ours */
}

bool klog_read(int fd, bool *lost, klog_line_fn *line, void *user)
{
	char text[2 * RECORD_MAX + 1];
	size_t len = 0, total = 0;
	bool fine = true;
	ssize_t n;

	while (total < BYTES_MAX) {
		n = read(fd, text + len, RECORD_MAX);
		if (n < 0 && errno == EPIPE)	/* overwritten before we read it */
			*lost = true;
		else if (n < 0 && errno != EINTR && errno != EAGAIN)
			fine = false;
		if (n < 0 && (errno == EPIPE || errno == EINTR))
			continue;
		if (n <= 0)
			break;
		total += (size_t)n;
		len = take_lines(text, len + (size_t)n, line, user);
	}
	if (len) {
		text[len] = '\0';
		line(user, text);
	}
	return fine;
}

void klog_text(char *text, size_t len, klog_line_fn *line, void *user)
{
	char *at = text, *end;

	while (len && (end = memchr(at, '\n', len)) != NULL) {
		*end = '\0';
		line(user, at);
		len -= (size_t)(end + 1 - at);
		at = end + 1;
	}
}
