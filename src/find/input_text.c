/* SPDX-License-Identifier: Apache-2.0
 * Texts as an input (see find/input.h).
 */
#include "find/input_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/progress.h"
#include "find/input.h"
#include "find/words/log.h"
#include "find/words/observe.h"

static text_words_fn *words_from;

void text_words_from(text_words_fn *fn)
{
	words_from = fn;
}

struct text_source *text_source_new(void)
{
	struct text_source *s = xcalloc(1, sizeof(*s));
	const char **words = NULL;
	size_t n = words_from ? words_from(&words) : 0;

	s->log = log_new(words, n);
	s->about.log = s->log;
	free(words);
	return s;
}

/* A log may come through a pipe or be typed, but other devices may never end. */
static bool never_ends(const struct stat *st, int fd)
{
	return S_ISBLK(st->st_mode) || (S_ISCHR(st->st_mode) && isatty(fd) != 1 && st->st_rdev != makedev(1, 3));	/* /dev/null */
}

int text_source_read(struct text_source *s, const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), rc;
	struct stat st;

	if (fd < 0)
		return err_set(e, -errno, "cannot open '%s': %s", path, strerror(errno));
	if (fstat(fd, &st) == 0 && never_ends(&st, fd)) {
		close(fd);
		return err_set(e, -EINVAL, "'%s' is a device", path);
	}
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		progress_total((uint64_t)st.st_size);
	rc = log_read_fd(s->log, path, fd, -1);
	close(fd);
	if (rc == -EBADMSG)
		return err_set(e, rc, "'%s' is compressed, but damaged or cut short", path);
	return rc ? err_set(e, rc, "cannot read '%s': %s", path, strerror(-rc)) : 0;
}

/* Texts have no signature: input_sniff treats everything else as text. */
static bool text_sniff(const struct sniffed *s)
{
	(void)s;
	return false;
}

static void text_source_close(void *it)
{
	struct text_source *s = it;

	if (!s)
		return;
	log_free(s->log);
	free(s);
}

static void *text_source_open(const char *path, struct err *e)
{
	struct text_source *s = text_source_new();

	if (text_source_read(s, path, e)) {
		text_source_close(s);
		return NULL;
	}
	log_finish(s->log);
	return s;
}

static void text_source_observe(void *it, struct casefile *c)
{
	const struct text_source *s = it;

	text_observe(c, &s->about);
}

const struct input input_text = {
	.name = TEXT_OBSERVER,
	.what = "a text",
	.sniff = text_sniff,
	.open = text_source_open,
	.observe = text_source_observe,
	.close = text_source_close,
};
