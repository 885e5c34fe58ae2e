/* SPDX-License-Identifier: Apache-2.0
 * Does a child find the page empty that its parent asked to be wiped? The recorder knows by such a page that it is in a child. */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	char *page = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status;

	if (page == MAP_FAILED || madvise(page, 65536, MADV_WIPEONFORK) != 0)
		return 2;
	*page = 1;
	if (fork() == 0)
		_exit(*page);
	wait(&status);
	return WEXITSTATUS(status);
}
