/* SPDX-License-Identifier: Apache-2.0
 * Who a pid from NVML is (see holder.h).
 *
 * In a container, older drivers report host pids, newer ones (the open kernel modules have os_find_ns_pid) container
 * pids. A host pid may also exist in our namespace by chance, so we take a process for the right one only if the driver
 * is mapped into it.
 */
#include "probe/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/proc.h"

#define FIRST_PID_NAMESPACE	"pid:[4026531836]"	/* PROC_PID_INIT_INO of the kernel */

bool holder_pids_are_ours(void)
{
	char name[64];
	ssize_t n = readlink("/proc/self/ns/pid", name, sizeof(name) - 1);

	if (n <= 0)
		return false;
	name[n] = '\0';
	return strcmp(name, FIRST_PID_NAMESPACE) == 0;
}

static int open_proc(uint32_t pid, const char *what)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, what);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* 1: it uses the driver, 0: it does not, -1: we may not look. */
static int uses_driver(uint32_t pid)
{
	static const char *const marks[] = {"/dev/nvidia", "libcuda.so", "libnvidia-"};
	int fd = open_proc(pid, "maps"), rc, yes = 0;
	struct buf b;
	size_t i;

	if (fd < 0)
		return -1;
	buf_init(&b, 64u << 20);
	rc = buf_read_fd(&b, fd);
	close(fd);
	for (i = 0; rc == 0 && i < sizeof(marks) / sizeof(marks[0]); i++)
		yes |= b.len && strstr(b.data, marks[i]) != NULL;
	if (rc != 0 || b.len == 0)	/* a kernel thread or a zombie has no memory */
		yes = -1;
	buf_release(&b);
	return yes;
}

static enum holder_state holder_state_of(uint32_t pid, bool pids_are_ours)
{
	char state = proc_state((pid_t)pid);
	int driver;

	/* With hidepid, /proc hides other users' processes; kill shows that they exist. */
	if (!state && kill((pid_t)pid, 0) != 0 && errno == ESRCH)
		return pids_are_ours ? HOLDER_GONE : HOLDER_OUTSIDE;
	if (!pids_are_ours) {
		driver = state && state != 'Z' ? uses_driver(pid) : -1;
		if (driver < 1)
			return driver == 0 ? HOLDER_OUTSIDE : HOLDER_UNKNOWN;
	}
	return state == 'Z' || state == 'X' ? HOLDER_ZOMBIE : HOLDER_RUNNING;
}

static bool is_own_user(uint32_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u", pid);
	return stat(path, &st) == 0 && st.st_uid == geteuid();
}

/* Each argument ends with a NUL; a program may also have overwritten them. */
static void read_command(struct gpu_holder *h, const char *what)
{
	int fd = open_proc(h->pid, what);
	ssize_t n = fd >= 0 ? read(fd, h->command, sizeof(h->command) - 1) : 0, i;

	if (fd >= 0)
		close(fd);
	n = n < 0 ? 0 : n;
	for (i = 0; i < n; i++)
		if ((unsigned char)h->command[i] < ' ' || h->command[i] == 127)
			h->command[i] = ' ';
	while (n > 0 && h->command[n - 1] == ' ')
		n--;
	h->command[n] = '\0';
}

void holder_look(struct gpu_holder *h, bool pids_are_ours)
{
	h->command[0] = '\0';
	h->own_user = 0;
	h->state = h->pid ? holder_state_of(h->pid, pids_are_ours) : HOLDER_UNKNOWN;
	if (h->state != HOLDER_RUNNING && h->state != HOLDER_ZOMBIE)
		return;
	h->own_user = is_own_user(h->pid);
	read_command(h, "cmdline");
	if (!h->command[0])
		read_command(h, "comm");
}
