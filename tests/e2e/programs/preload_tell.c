/* SPDX-License-Identifier: Apache-2.0
 * A preloaded library that writes the name of each program it is loaded into to the file CUWHY_TEST_TELL names. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void tell(void)
{
	const char *path = getenv("CUWHY_TEST_TELL");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;

	if (fd < 0)
		return;
	if (write(fd, program_invocation_short_name, strlen(program_invocation_short_name)) > 0 && write(fd, "\n", 1) == 1)
		close(fd);
}
