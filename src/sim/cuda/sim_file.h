/* SPDX-License-Identifier: Apache-2.0
 * Files in place of memory, in a program whose RLIMIT_FSIZE is not about them.
 *
 * A GPU's memory is no file, so a limit on files must neither end the program (SIGXFSZ) nor make memory smaller.
 */
#ifndef CUWHY_SIM_FILE_H
#define CUWHY_SIM_FILE_H

#include <errno.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

static inline bool sim_file_may_have(off_t bytes)
{
	struct rlimit l;

	return getrlimit(RLIMIT_FSIZE, &l) == 0 && (l.rlim_cur == RLIM_INFINITY || l.rlim_cur >= (rlim_t)bytes);
}

/* ftruncate(), which fails with EFBIG where it would end the program. */
static inline int sim_file_resize(int fd, off_t bytes)
{
	if (sim_file_may_have(bytes))
		return ftruncate(fd, bytes);
	errno = EFBIG;
	return -1;
}

#endif
