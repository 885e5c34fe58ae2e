/* SPDX-License-Identifier: Apache-2.0
 * Files that are written piece by piece (see outfile.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/outfile.h"
#include "base/banned.h"

static int open_special(const char *path)
{
	/* O_NONBLOCK: a pipe that nobody reads is an error, not a wait */
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd >= 0 && fcntl(fd, F_SETFL, 0) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

int outfile_open(struct outfile *f, const char *path, struct err *e)
{
	struct stat st;
	int fd;

	*f = (struct outfile){.path = path};
	if (!strcmp(path, "-")) {
		f->out = stdout;
		return 0;
	}
	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		fd = open_special(path);
	} else {
		f->beside = xasprintf("%s.XXXXXX", path);
		fd = mkostemp(f->beside, O_CLOEXEC);
	}
	f->out = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (f->out)
		return 0;
	err_set(e, -errno, "cannot write '%s': %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	free(f->beside);
	return e->code;
}

int outfile_close(struct outfile *f, bool keep, uint64_t *bytes, struct err *e)
{
	int rc = fflush(f->out) != 0 || ferror(f->out) ? -(errno ? errno : EIO) : 0;
	long at = ftell(f->out);

	if (bytes)
		*bytes = at > 0 ? (uint64_t)at : 0;
	if (f->out != stdout && fclose(f->out) != 0 && rc == 0)
		rc = -errno;
	if (f->beside && keep && rc == 0 && rename(f->beside, f->path) != 0)
		rc = -errno;
	if (f->beside && (rc || !keep))
		unlink(f->beside);
	free(f->beside);
	return rc ? err_set(e, rc, "cannot write '%s': %s", f->path, strerror(-rc)) : 0;
}
