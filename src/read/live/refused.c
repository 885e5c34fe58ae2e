/* SPDX-License-Identifier: Apache-2.0
 * Why a process cannot be looked at, in one sentence with what to run (see look.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/proc.h"
#include "read/live/look.h"

static int yama(void)
{
	char text[8] = "";
	size_t n = fs_read_head("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text) - 1);

	return n && text[0] >= '0' && text[0] <= '9' ? text[0] - '0' : 0;
}

static bool in_container(void)
{
	return fs_exists("/.dockerenv") || fs_exists("/run/.containerenv") || getenv("KUBERNETES_SERVICE_HOST");
}

static int refused_to_root(pid_t pid, const char *command, struct err *e)
{
	if (in_container()) {
		err_set(e, -EPERM, "this container does not allow cuwhy to look at process %d", (int)pid);
		return err_hint(e,
				"start the container with --cap-add SYS_PTRACE, or on the host: sudo cuwhy %s --pid PID",
				command);
	}
	err_set(e, -EPERM, "the kernel lets no process look at process %d, not even as root", (int)pid);
	return err_hint(e,
			"another debugger may hold it, or a security module forbids it: see /proc/%d/status (TracerPid)",
			(int)pid);
}

static int refused_to_owner(pid_t pid, const char *command, struct err *e)
{
	int scope = yama();

	if (scope == 3) {
		err_set(e, -EPERM, "no process may look at another on this machine (Yama, ptrace_scope 3)");
		return err_hint(e, "it can only be changed at boot: kernel.yama.ptrace_scope in /etc/sysctl.d");
	}
	if (scope > 0) {
		err_set(e, -EPERM, "only root may look at process %d (Yama, ptrace_scope %d)", (int)pid, scope);
		return err_hint(e, "sudo cuwhy %s --pid %d", command, (int)pid);
	}
	if (in_container())
		return refused_to_root(pid, command, e);
	err_set(e, -EPERM, "process %d has more privileges than you: only root may look at it", (int)pid);
	return err_hint(e, "sudo cuwhy %s --pid %d", command, (int)pid);
}

int look_refused(pid_t pid, int rc, const char *command, struct err *e)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &st) != 0 || (rc == -ESRCH && proc_state(pid) == 0)) {
		err_set(e, -ESRCH, "there is no process %d", (int)pid);
		return err_hint(e, "'ps -ef' lists them; of a process in a container: its number outside of it");
	}
	if (rc == -ESRCH) {
		err_set(e, -ESRCH, "process %d has no memory: it has ended, or is part of the kernel", (int)pid);
		return err_hint(e, "its parent has not collected it: ps -o pid,ppid,stat,cmd -p %d", (int)pid);
	}
	if (rc != -EPERM && rc != -EACCES)
		return err_set(e, rc, "cannot look at process %d: %s", (int)pid, strerror(-rc));
	if (geteuid() == 0)
		return refused_to_root(pid, command, e);
	if (st.st_uid != geteuid()) {
		err_set(e, -EPERM, "process %d belongs to another user", (int)pid);
		return err_hint(e, "sudo cuwhy %s --pid %d", command, (int)pid);
	}
	return refused_to_owner(pid, command, e);
}
