/* SPDX-License-Identifier: Apache-2.0
 * Tries to change the folder that it is given, by every system call that could: attack FOLDER SCRATCH. Each attack that the kernel says
 * has succeeded is printed; whoever called looks at the folder afterwards. With a third argument, nothing that the system would keep is tried:
 * mounts, accounting, swapping.
 *
 * FOLDER has: file, other, folder/inner, link -> file, empty (a folder).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

static char folder[512], scratch[512];
static int tried, done;
static bool everything;

/* Calls without libc's names, so that nothing is redirected. */
static long call(long nr, long a, long b, long c, long d, long e)
{
	return syscall(nr, a, b, c, d, e, 0L);
}
#define CALL(nr, a, b, c, d, e) call(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))

static const char *in(const char *name)
{
	static char path[8][1024];
	static int next;
	char *to = path[next++ % 8];

	snprintf(to, 1024, "%s/%s", folder, name);
	return to;
}

/* A name that is not taken. */
static const char *made(void)
{
	char name[32];
	static int n;

	snprintf(name, sizeof(name), "made%d", n++);
	return in(name);
}

static const char *mine(const char *name)
{
	static char path[4][1024];
	static int next;
	char *to = path[next++ % 4];

	snprintf(to, 1024, "%s/%s", scratch, name);
	return to;
}

static const char *by_fd(int fd)
{
	static char path[4][64];
	static int next;
	char *to = path[next++ % 4];

	snprintf(to, 64, "/proc/self/fd/%d", fd);
	return to;
}

static void result(const char *what, long rc)
{
	tried++;
	if (rc < 0)
		return;
	done++;
	printf("allowed: %s\n", what);
}

static int raw_open(const char *path, int flags)
{
	return (int)CALL(SYS_openat, AT_FDCWD, path, flags, 0666, 0);
}

static void contents(void)
{
	struct { uint64_t flags, mode, resolve; } how = {O_WRONLY | O_TRUNC, 0, 0};
	static const int flags[] = {O_WRONLY,
				    O_RDWR,
				    O_WRONLY | O_APPEND,
				    O_WRONLY | O_TRUNC,
				    O_RDONLY | O_TRUNC,
				    O_ACCMODE | O_TRUNC,
				    O_RDWR | O_CREAT};
	int fd = raw_open(in("file"), O_RDONLY), path = raw_open(in("file"), O_PATH), dir = raw_open(folder, O_PATH);

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		result("open", raw_open(in("file"), flags[i]));
		result("open by a link", raw_open(in("link"), flags[i]));
		result("open by /proc/self/fd", raw_open(by_fd(fd), flags[i]));
		result("open by /proc/self/fd of a path", raw_open(by_fd(path), flags[i]));
		result("openat", CALL(SYS_openat, dir, "file", flags[i], 0666, 0));
#ifdef SYS_open
		result("old open", CALL(SYS_open, in("file"), flags[i], 0666, 0, 0));
#endif
	}
	result("openat2", CALL(SYS_openat2, AT_FDCWD, in("file"), &how, sizeof(how), 0));
	how.flags = O_RDONLY | O_TRUNC;
	result("openat2 that only empties", CALL(SYS_openat2, AT_FDCWD, in("file"), &how, sizeof(how), 0));
	result("truncate", CALL(SYS_truncate, in("file"), 0, 0, 0, 0));
	result("truncate by /proc/self/fd", CALL(SYS_truncate, by_fd(fd), 0, 0, 0, 0));
	result("ftruncate", CALL(SYS_ftruncate, fd, 0, 0, 0, 0));
	result("write", CALL(SYS_write, fd, "x", 1, 0, 0));
	result("fallocate", CALL(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4, 0));
	result("copy_file_range", CALL(SYS_copy_file_range, fd, 0, fd, 0, 4));
	result("FICLONE", ioctl(fd, FICLONE, fd));
	result("mmap", mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
	result("mprotect", mprotect(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0), 4096, PROT_READ | PROT_WRITE));
#ifdef SYS_creat
	result("creat", CALL(SYS_creat, in("file"), 0666, 0, 0, 0));
#endif
}

static void names(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_STREAM, 0), own;

	result("create", raw_open(made(), O_WRONLY | O_CREAT));
	result("O_TMPFILE", raw_open(folder, O_RDWR | O_TMPFILE));
	result("mkdirat", CALL(SYS_mkdirat, AT_FDCWD, made(), 0777, 0, 0));
	result("mkfifo", CALL(SYS_mknodat, AT_FDCWD, made(), S_IFIFO | 0666, 0, 0));
	result("mknod", CALL(SYS_mknodat, AT_FDCWD, made(), S_IFREG | 0666, 0, 0));
	result("device", CALL(SYS_mknodat, AT_FDCWD, made(), S_IFCHR | 0666, 0x103, 0));
	result("disk in the scratch", CALL(SYS_mknodat, AT_FDCWD, mine("disk"), S_IFBLK | 0666, 0xfe00, 0));
	result("symlinkat", CALL(SYS_symlinkat, "x", AT_FDCWD, made(), 0, 0));
	result("linkat inside", CALL(SYS_linkat, AT_FDCWD, in("file"), AT_FDCWD, made(), 0));
	result("linkat out", CALL(SYS_linkat, AT_FDCWD, in("file"), AT_FDCWD, mine("stolen"), 0));
	own = raw_open(mine("own"), O_RDWR | O_CREAT);
	result("linkat in", CALL(SYS_linkat, AT_FDCWD, mine("own"), AT_FDCWD, made(), 0));
	result("linkat by /proc/self/fd", CALL(SYS_linkat, AT_FDCWD, by_fd(own), AT_FDCWD, made(), AT_SYMLINK_FOLLOW));
	result("unlinkat", CALL(SYS_unlinkat, AT_FDCWD, in("file"), 0, 0, 0));
	result("unlinkat of a link", CALL(SYS_unlinkat, AT_FDCWD, in("link"), 0, 0, 0));
	result("rmdir", CALL(SYS_unlinkat, AT_FDCWD, in("empty"), AT_REMOVEDIR, 0, 0));
	result("rename", CALL(SYS_renameat2, AT_FDCWD, in("file"), AT_FDCWD, made(), 0));
	result("rename over", CALL(SYS_renameat2, AT_FDCWD, in("other"), AT_FDCWD, in("file"), 0));
	result("rename out", CALL(SYS_renameat2, AT_FDCWD, in("file"), AT_FDCWD, mine("stolen"), 0));
	result("rename in", CALL(SYS_renameat2, AT_FDCWD, mine("own"), AT_FDCWD, in("file"), 0));
	result("exchange", CALL(SYS_renameat2, AT_FDCWD, in("other"), AT_FDCWD, in("file"), RENAME_EXCHANGE));
	result("exchange with the scratch",
	       CALL(SYS_renameat2, AT_FDCWD, mine("own"), AT_FDCWD, in("file"), RENAME_EXCHANGE));
	result("whiteout", CALL(SYS_renameat2, AT_FDCWD, in("file"), AT_FDCWD, made(), RENAME_WHITEOUT));
	snprintf(un.sun_path, sizeof(un.sun_path), "%.90s/made", folder);
	result("bind", CALL(SYS_bind, s, &un, sizeof(un), 0, 0));
#ifdef SYS_unlink
	result("old unlink", CALL(SYS_unlink, in("file"), 0, 0, 0, 0));
	result("old rmdir", CALL(SYS_rmdir, in("empty"), 0, 0, 0, 0));
	result("old mkdir", CALL(SYS_mkdir, made(), 0777, 0, 0, 0));
	result("old rename", CALL(SYS_rename, in("file"), made(), 0, 0, 0));
	result("old link", CALL(SYS_link, in("file"), made(), 0, 0, 0));
	result("old symlink", CALL(SYS_symlink, "x", made(), 0, 0, 0));
#endif
}

struct setattr_args { uint64_t value; uint32_t size, flags; };
struct file_attr_args { uint64_t xflags; uint32_t extsize, nextents, projid, cowextsize; };

static void settings(void)
{
	struct timespec times[2] = {{1, 1}, {2, 2}};
	struct setattr_args xattr = {(uint64_t)(uintptr_t) "v", 1, 0};
	struct file_attr_args attr = {0};
	int fd = raw_open(in("file"), O_RDONLY), dir = raw_open(folder, O_RDONLY | O_DIRECTORY),
	    path = raw_open(in("file"), O_PATH);
	int flags = FS_NOATIME_FL | FS_NODUMP_FL;
	struct fsxattr fsx = {.fsx_xflags = FS_XFLAG_NODUMP};
	const char *file[] = {in("file"), by_fd(fd), by_fd(path)};

	for (int i = 0; i < 3; i++) {
		result("fchmodat", CALL(SYS_fchmodat, AT_FDCWD, file[i], 0777, 0, 0));
		result("fchmodat2", CALL(452, AT_FDCWD, file[i], 0777, 0, 0));
		result("fchownat", CALL(SYS_fchownat, AT_FDCWD, file[i], 1, 1, 0));
		result("utimensat", CALL(SYS_utimensat, AT_FDCWD, file[i], times, 0, 0));
		result("utimensat to now", CALL(SYS_utimensat, AT_FDCWD, file[i], 0, 0, 0));
		result("setxattr", CALL(SYS_setxattr, file[i], "user.x", "v", 1, 0));
		result("lsetxattr", CALL(SYS_lsetxattr, file[i], "user.x", "v", 1, 0));
		result("removexattr", CALL(SYS_removexattr, file[i], "user.kept", 0, 0, 0));
		result("lremovexattr", CALL(SYS_lremovexattr, file[i], "user.kept", 0, 0, 0));
		result("setxattrat", syscall(463, AT_FDCWD, file[i], 0, "user.x", &xattr, sizeof(xattr)));
		result("removexattrat", CALL(466, AT_FDCWD, file[i], 0, "user.kept", 0));
		result("file_setattr", CALL(469, AT_FDCWD, file[i], &attr, sizeof(attr), 0));
#ifdef SYS_chmod
		result("chmod", CALL(SYS_chmod, file[i], 0777, 0, 0, 0));
		result("chown", CALL(SYS_chown, file[i], 1, 1, 0, 0));
		result("lchown", CALL(SYS_lchown, file[i], 1, 1, 0, 0));
		result("utime", CALL(SYS_utime, file[i], 0, 0, 0, 0));
		result("utimes", CALL(SYS_utimes, file[i], 0, 0, 0, 0));
		result("futimesat", CALL(SYS_futimesat, AT_FDCWD, file[i], 0, 0, 0));
#endif
	}
	for (int i = 0; i < 2; i++) {
		int on = i ? dir : fd;

		result("fchmod", CALL(SYS_fchmod, on, 0777, 0, 0, 0));
		result("fchown", CALL(SYS_fchown, on, 1, 1, 0, 0));
		result("fchownat of a descriptor", CALL(SYS_fchownat, on, "", 1, 1, AT_EMPTY_PATH));
		result("fchmodat2 of a descriptor", CALL(452, on, "", 0777, AT_EMPTY_PATH, 0));
		result("futimens", CALL(SYS_utimensat, on, 0, times, 0, 0));
		result("fsetxattr", CALL(SYS_fsetxattr, on, "user.x", "v", 1, 0));
		result("fremovexattr", CALL(SYS_fremovexattr, on, "user.kept", 0, 0, 0));
		result("FS_IOC_SETFLAGS", ioctl(on, FS_IOC_SETFLAGS, &flags));
		result("FS_IOC_FSSETXATTR", ioctl(on, FS_IOC_FSSETXATTR, &fsx));
		result("FS_IOC_SETVERSION", ioctl(on, _IOW('v', 2, long), &flags));
		result("a btrfs ioctl", ioctl(on, _IOW(0x94, 1, char[4096]), &fsx));
	}
}

static void ring(void)
{
	struct io_uring_params params = {0};

	result("io_uring_setup", CALL(SYS_io_uring_setup, 4, &params, 0, 0, 0));
}

static void handle(void)
{
	char space[sizeof(struct file_handle) + 128];
	struct file_handle *h = (struct file_handle *)space;
	int id, dir = raw_open(folder, O_RDONLY | O_DIRECTORY);

	h->handle_bytes = 128;
	if (CALL(SYS_name_to_handle_at, AT_FDCWD, in("file"), h, &id, 0) == 0)
		result("open_by_handle_at", CALL(SYS_open_by_handle_at, dir, h, O_RDWR, 0, 0));
}

/* In a child, so that what succeeds does not help the next. */
static void in_child(const char *what, int (*attempt)(void))
{
	pid_t child = fork();
	int status = 0;

	if (child == 0)
		_exit(attempt() < 0 ? 1 : 0);
	waitpid(child, &status, 0);
	result(what, WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1);
}

static int own_users(void)
{
	return (int)CALL(SYS_unshare, CLONE_NEWUSER, 0, 0, 0, 0);
}

static int own_mounts(void)
{
	return (int)CALL(SYS_unshare, CLONE_NEWNS, 0, 0, 0, 0);
}

static int clone_users(void)
{
	long child = CALL(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	if (child == 0)
		_exit(0);
	return (int)child;
}

static int clone3_users(void)
{
	uint64_t args[8] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD, 0, 0, 0};
	long child = CALL(435, args, sizeof(args), 0, 0, 0);

	if (child == 0)
		_exit(0);
	return (int)child;
}

static int join(void)
{
	int fd = raw_open("/proc/self/ns/mnt", O_RDONLY);

	return (int)CALL(SYS_setns, fd, 0, 0, 0, 0);
}

static int other_root(void)
{
	return (int)CALL(SYS_chroot, folder, 0, 0, 0, 0);
}

static int bind_mount(void)
{
	return (int)CALL(SYS_mount, folder, scratch, 0, MS_BIND, 0);
}

static int mount_over(void)
{
	return (int)CALL(SYS_mount, "none", in("empty"), "tmpfs", 0, 0);
}

static int tree(void)
{
	return (int)CALL(428, AT_FDCWD, folder, 1, 0, 0);
}

static int account(void)
{
	return (int)CALL(SYS_acct, in("file"), 0, 0, 0, 0);
}

static int swap(void)
{
	return (int)CALL(SYS_swapon, in("file"), 0, 0, 0, 0);
}

/* Whoever is inherited by path: another process's descriptors and root. */
static int by_other_process(void)
{
	char path[1200];

	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)getppid(), in("file"));
	return raw_open(path, O_WRONLY);
}

static void around(void)
{
	ring();
	handle();
	in_child("unshare a user namespace", own_users);
	in_child("unshare a mount namespace", own_mounts);
	in_child("clone with a user namespace", clone_users);
	in_child("clone3 with a user namespace", clone3_users);
	in_child("setns", join);
	in_child("chroot", other_root);
	in_child("bind mount", bind_mount);
	in_child("mount over a folder", mount_over);
	in_child("open_tree", tree);
	in_child("acct", account);
	in_child("swapon", swap);
	in_child("another process's root", by_other_process);
}

#if defined(__x86_64__)
/* 32-bit system calls of a 64-bit program: paths must be low in memory. */
static long call32(long nr, long a, long b, long c, long d)
{
	long rc;

	__asm__ volatile("int $0x80" : "=a"(rc) : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d) : "r8", "r9", "r10", "r11", "memory");
	return (int)rc;
}

static int calls32(void)
{
	static const struct { const char *what; int nr; long b, c, d; } of_path[] = {
		{"open", 5, O_WRONLY, 0, 0}, {"open that empties", 5, O_TRUNC, 0, 0},
		{"creat", 8, 0666, 0, 0},    {"unlink", 10, 0, 0, 0},
		{"chmod", 15, 0777, 0, 0},   {"lchown16", 16, 1, 1, 0},
		{"chown", 212, 1, 1, 0},     {"lchown", 198, 1, 1, 0},
		{"utime", 30, 0, 0, 0},	     {"utimes", 271, 0, 0, 0},
		{"truncate", 92, 0, 0, 0},   {"truncate64", 193, 0, 0, 0},
		{"chown16", 182, 1, 1, 0},
	};
	static const struct { const char *what; int nr; long b, c, d; } of_fd[] = {
		{"fchmod", 94, 0777, 0, 0}, {"fchown16", 95, 1, 1, 0},	  {"fchown", 207, 1, 1, 0},
		{"futimens", 320, 0, 0, 0}, {"futimens64", 412, 0, 0, 0}, {"ftruncate", 93, 0, 0, 0},
	};
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int fd = raw_open(in("file"), O_RDONLY);

	snprintf(low, 1024, "%s", in("file"));
	snprintf(low + 1024, 16, "user.kept");
	snprintf(low + 1100, 16, "user.x");
	for (size_t i = 0; i < sizeof(of_path) / sizeof(of_path[0]); i++)
		result(of_path[i].what, call32(of_path[i].nr, (long)low, of_path[i].b, of_path[i].c, of_path[i].d));
	result("32-bit removexattr", call32(235, (long)low, (long)low + 1024, 0, 0));
	for (size_t i = 0; i < sizeof(of_fd) / sizeof(of_fd[0]); i++)
		result(of_fd[i].what, call32(of_fd[i].nr, fd, of_fd[i].b, of_fd[i].c, of_fd[i].d));
	result("32-bit setxattr", call32(226, (long)low, (long)low + 1100, (long)low, 1));
	result("32-bit fsetxattr", call32(228, fd, (long)low + 1100, (long)low, 1));
	result("32-bit fchmodat", call32(306, AT_FDCWD, (long)low, 0777, 0));
	result("32-bit utimensat", call32(320, AT_FDCWD, (long)low, 0, 0));
	result("32-bit ioctl", call32(54, fd, 0x40046602, (long)low + 2000, 0));
	if (everything) {
		result("32-bit acct", call32(51, (long)low, 0, 0, 0));
		result("32-bit swapon", call32(87, (long)low, 0, 0, 0));
		result("32-bit chroot", call32(61, (long)low, 0, 0, 0));
	}
	result("32-bit unshare", call32(310, CLONE_NEWUSER, 0, 0, 0));
	result("32-bit io_uring", call32(425, 4, (long)low + 2048, 0, 0));
	printf("32: %d\n", tried);
	fflush(stdout);
	_exit(done);
}

static void narrow(void)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		calls32();
	waitpid(child, &status, 0);
	if (!WIFEXITED(status))		/* a kernel without them */
		return;
	done += WEXITSTATUS(status);
	result("an x32 call", CALL(0x40000000 + SYS_fchmodat, AT_FDCWD, in("file"), 0777, 0, 0));
}
#else
static void narrow(void)
{
}
#endif

/* What an attack that succeeded has taken away. */
static void restore(void)
{
	int fd = open(in("file"), O_CREAT | O_WRONLY, 0666);

	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	snprintf(folder, sizeof(folder), "%s", argv[1]);
	snprintf(scratch, sizeof(scratch), "%s", argv[2]);
	everything = argc == 3;
	settings();
	contents();
	narrow();
	restore();
	names();
	if (everything)
		around();
	printf("tried: %d\n", tried);
	return done != 0;
}
