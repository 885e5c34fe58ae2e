/* SPDX-License-Identifier: Apache-2.0
 * Landlock, and the order in which a process locks itself in; see fence.h.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "writes/fence.h"
#include "writes/scratch.h"

/* Landlock, as <linux/landlock.h> has it, which old systems do not. Its numbers are those of every processor. */
#define NR_CREATE_RULESET	444
#define NR_ADD_RULE		445
#define NR_RESTRICT_SELF	446
#define ASK_VERSION		1u
#define RULE_PATH_BENEATH	1

#define WRITE_FILE	(1ull << 1)
#define REMOVE_DIR	(1ull << 4)
#define REMOVE_FILE	(1ull << 5)
#define MAKE_CHAR	(1ull << 6)
#define MAKE_DIR	(1ull << 7)
#define MAKE_REG	(1ull << 8)
#define MAKE_SOCK	(1ull << 9)
#define MAKE_FIFO	(1ull << 10)
#define MAKE_BLOCK	(1ull << 11)
#define MAKE_SYM	(1ull << 12)
#define REFER		(1ull << 13)	/* ABI 2; before, nothing goes from one folder to another */
#define TRUNCATE	(1ull << 14)	/* ABI 3 */

struct ruleset_attr { uint64_t fs; };
struct beneath_attr { uint64_t allowed; int32_t fd; } __attribute__((packed));

/* The newest of the kernel's that is used; tests ask for an older one. */
#ifndef FENCE_ABI_MOST
#define FENCE_ABI_MOST 3
#endif

/* All that changes contents or names. Reading, running and what devices do is not our business. */
static uint64_t rights(int abi)
{
	uint64_t all = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_CHAR | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO |
		       MAKE_BLOCK | MAKE_SYM;

	return all | (abi >= 2 ? REFER : 0) | (abi >= 3 ? TRUNCATE : 0);
}

/* In the scratch no devices: a node of one's own would be a way to the disk. */
static const uint64_t no_devices = ~(MAKE_CHAR | MAKE_BLOCK);
static const uint64_t of_files = WRITE_FILE | TRUNCATE;	/* a rule about a file may have no others */

static int landlock_abi(struct err *e)
{
	long abi = syscall(NR_CREATE_RULESET, NULL, 0, ASK_VERSION);
	int rc = -errno;

	if (abi > 0)
		return abi < FENCE_ABI_MOST ? (int)abi : FENCE_ABI_MOST;
	if (rc == -ENOSYS)
		return err_set(e, rc, "this kernel has no Landlock (Linux 5.13)");
	if (rc == -EOPNOTSUPP)
		return err_set(e, rc, "Landlock was not enabled when this system started");
	if (rc == -EPERM)
		return err_set(e, rc, "the container does not allow Landlock");
	return err_set(e, rc, "Landlock: %s", strerror(-rc));
}

static int allow_fd(int rules, int fd, uint64_t what)
{
	struct beneath_attr a = {what, fd};
	long rc = syscall(NR_ADD_RULE, rules, RULE_PATH_BENEATH, &a, 0);

	return rc == 0 ? 0 : -errno;
}

static int allow(int rules, const char *path, uint64_t what)
{
	int fd = open(path, O_PATH | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = allow_fd(rules, fd, what);
	close(fd);
	return rc;
}

/* Devices other than disks: what is on a disk are somebody's files. */
static int allow_device(int rules, int dev, const char *name, uint64_t all)
{
	struct stat st;
	int fd = openat(dev, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return 0;	/* gone meanwhile */
	if (fstat(fd, &st) == 0 && S_ISCHR(st.st_mode))
		rc = allow_fd(rules, fd, all & of_files);
	else if (S_ISDIR(st.st_mode))
		rc = allow_fd(rules, fd, all & no_devices);
	close(fd);
	return rc;
}

static int allow_devices(int rules, uint64_t all)
{
	DIR *dev = opendir("/dev");
	struct dirent *entry;
	int rc = 0;

	while (dev && rc == 0 && (entry = readdir(dev)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			rc = allow_device(rules, dirfd(dev), entry->d_name, all);
	if (dev)
		closedir(dev);
	return rc;
}

static int allow_all(int rules, uint64_t all, const char *scratch, const char *const *real, struct err *e)
{
	static const char *const system[] = {"/proc", "/sys"};
	int rc;

	if ((rc = allow(rules, scratch, all & no_devices)) < 0)
		return err_set(e, rc, "cannot use '%s' for what the program writes: %s", scratch, strerror(-rc));
	for (; *real; real++)
		if ((rc = allow(rules, *real, all & no_devices)) < 0)
			return err_set(e, rc, "cannot let the program write to '%s': %s", *real, strerror(-rc));
	for (size_t i = 0; i < sizeof(system) / sizeof(system[0]); i++)
		if ((rc = allow(rules, system[i], all & no_devices)) < 0 && rc != -ENOENT && rc != -EACCES)
			return err_set(e, rc, "cannot let the program write to %s: %s", system[i], strerror(-rc));
	if ((rc = allow_devices(rules, all)) < 0)
		return err_set(e, rc, "cannot let the program use the devices: %s", strerror(-rc));
	return 0;
}

static int landlock(int abi, const char *scratch, const char *const *real, struct err *e)
{
	struct ruleset_attr attr = {rights(abi)};
	int rules = (int)syscall(NR_CREATE_RULESET, &attr, sizeof(attr), 0), rc;

	if (rules < 0)
		return err_set(e, -errno, "Landlock: %s", strerror(errno));
	rc = allow_all(rules, attr.fs, scratch, real, e);
	if (rc == 0 && syscall(NR_RESTRICT_SELF, rules, 0) != 0)
		rc = err_set(e, -errno, "Landlock: %s",
			     errno == E2BIG ? "16 programs have locked this one in already" : strerror(errno));
	close(rules);
	return rc;
}

static int make_folder(const char *scratch, const char *name)
{
	char path[SCRATCH_LONGEST + 16];

	snprintf(path, sizeof(path), "%s%s", scratch, name);
	return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : -errno;
}

static int make_file(const char *scratch, const char *name, const void *data, size_t len)
{
	char path[SCRATCH_LONGEST + 16];
	int fd, rc = 0;

	snprintf(path, sizeof(path), "%s%s", scratch, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, data, len) != (ssize_t)len)
		rc = errno ? -errno : -EIO;
	close(fd);
	return rc;
}

/* Without links, as the library sees them in paths that the kernel gives. */
static int make_list(const char *scratch, const char *const *real)
{
	char list[SCRATCH_REAL_LONGEST], path[SCRATCH_LONGEST + 16], *whole;
	size_t n = 0;

	for (; *real; real++) {
		whole = realpath(*real, NULL);
		if (!whole)
			return -errno;
		if (n + strlen(whole) + 1 > sizeof(list)) {
			free(whole);
			return -ENAMETOOLONG;
		}
		memcpy(list + n, whole, strlen(whole) + 1);
		n += strlen(whole) + 1;
		free(whole);
	}
	snprintf(path, sizeof(path), "%s" SCRATCH_REAL, scratch);
	unlink(path);
	return make_file(scratch, SCRATCH_REAL, list, n);
}

static int read_pass(const char *scratch, struct scratch_pass *pass)
{
	char path[SCRATCH_LONGEST + 16];
	int fd, rc;

	snprintf(path, sizeof(path), "%s" SCRATCH_PASS, scratch);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	rc = read(fd, pass, sizeof(*pass)) == sizeof(*pass) ? 0 : -EIO;
	close(fd);
	return rc;
}

/* Several programs may share a scratch, one after the other: they share its pass, too. */
static int prepare(const char *scratch, const char *const *real, struct scratch_pass *pass)
{
	static const struct scratch_state nothing;
	int rc;

	if ((rc = make_folder(scratch, SCRATCH_NEW)) < 0 || (rc = make_folder(scratch, SCRATCH_GONE)) < 0)
		return rc;
	rc = make_file(scratch, SCRATCH_STATE, &nothing, sizeof(nothing));
	if (rc < 0 && rc != -EEXIST)
		return rc;
	if ((rc = make_list(scratch, real)) < 0)
		return rc;
	if (getrandom(pass, sizeof(*pass), 0) != sizeof(*pass))
		return -EIO;
	rc = make_file(scratch, SCRATCH_PASS, pass, sizeof(*pass));
	return rc == -EEXIST ? read_pass(scratch, pass) : rc;
}

int fence_enter(const char *scratch, const char *const *real, struct err *e)
{
	struct scratch_pass pass;
	int abi = landlock_abi(e), rc;

	if (abi < 0)
		return abi;
	if (scratch[0] != '/' || strlen(scratch) > SCRATCH_LONGEST)
		return err_set(e, -EINVAL,
			       "'%s' cannot be used for what the program writes: its path is too long, or relative",
			       scratch);
	if ((rc = prepare(scratch, real, &pass)) < 0)
		return err_set(e, rc, "cannot use '%s' for what the program writes: %s", scratch, strerror(-rc));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return err_set(e, -errno, "the program cannot be kept from gaining privileges: %s", strerror(errno));
	if ((rc = landlock(abi, scratch, real, e)) < 0)
		return rc;
	return fence_filter(pass.half ^ pass.other, abi < 3, e);
}

/* The scratch that a variable names may be another's, which is gone; the filter's answer is a fact: without it, no such descriptor. */
bool fence_inside(void)
{
	return getenv(SCRATCH_ENV) && syscall(SYS_fchmod, -1, 0) != 0 && errno == EPERM;
}

/* Everything but the folders. */
static int try_it(struct err *e)
{
	static const char *const none[] = {NULL};
	int abi = landlock_abi(e), rc;

	if (abi < 0)
		return abi;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return err_set(e, -errno, "the program cannot be kept from gaining privileges: %s", strerror(errno));
	if ((rc = landlock(abi, "/dev", none, e)) < 0)
		return rc;
	return fence_filter(1, abi < 3, e);
}

/* What failed comes back through a pipe. */
int fence_possible(struct err *e)
{
	struct err why = {0};
	int ends[2], status;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_set(e, -errno, "no pipe can be made: %s", strerror(errno));
	child = fork();
	if (child == 0) {
		try_it(&why);
		_exit(write(ends[1], &why, sizeof(why)) == sizeof(why) ? 0 : 1);
	}
	close(ends[1]);
	if (child < 0 || read(ends[0], &why, sizeof(why)) != sizeof(why))
		err_set(&why, -ECHILD, "it could not be tried");
	close(ends[0]);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (why.code < 0 && e)
		*e = why;
	return why.code;
}
