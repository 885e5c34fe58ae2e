/* SPDX-License-Identifier: Apache-2.0
 * Files written piece by piece (see outfile.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/outfile.h"
#include "base/term.h"

int outfile_open(struct outfile *f, const char *path, struct err *e)
{
	int fd, rc;

	*f = (struct outfile){.path = path};
	if (!strcmp(path, "-")) {
		f->out = term_bytes();
		return 0;
	}
	if (fs_is_special(path)) {
		fd = fs_open_special(path);
	} else {
		f->beside = xasprintf("%s.XXXXXX", path);
		fd = mkostemp(f->beside, O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	}
	f->out = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (f->out)
		return 0;
	rc = fd < 0 ? fd : -errno;
	err_set(e, rc, "cannot write '%s': %s", path, strerror(-rc));
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
	if (strcmp(f->path, "-") != 0 && fclose(f->out) != 0 && rc == 0)
		rc = -errno;
	if (f->beside && keep && rc == 0 && rename(f->beside, f->path) != 0)
		rc = -errno;
	if (f->beside && (rc || !keep))
		unlink(f->beside);
	free(f->beside);
	return rc ? err_set(e, rc, "cannot write '%s': %s", f->path, strerror(-rc)) : 0;
}
