/* SPDX-License-Identifier: Apache-2.0
 * The filter as a program for the kernel: first whose system calls they are (a 64-bit program can make 32-bit ones), then a list of
 * numbers, each with a jump to what becomes of the call. The kernel remembers which calls are always allowed, so the length of the list
 * costs nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "writes/fence.h"

enum what { PASS, NEVER, ABSENT, SPACES, IOCTL, OPEN2, OPEN3, OPENHOW, EMPTIES, ALLOW, N_WHAT };

struct call { int x86_64, aarch64, i386; enum what what; };

static const struct call calls[] = {
#define CALL(name, x86_64, aarch64, i386, what) {x86_64, aarch64, i386, what},
#include "writes/fence_calls.def"
#undef CALL
};
#define N_CALLS (sizeof(calls) / sizeof(calls[0]))

#if defined(__x86_64__)
#define NATIVE	AUDIT_ARCH_X86_64
#define NUMBER	x86_64
#define OTHERS	AUDIT_ARCH_I386
#define X32_BIT	0x40000000u
#elif defined(__aarch64__)
#define NATIVE	AUDIT_ARCH_AARCH64
#define NUMBER	aarch64
#else
#error "no port to this processor yet: fence_calls.def needs a column"
#endif

/* ioctls that change files through descriptors that are open for reading only. By kind, since file systems have their own: those of
 * every file system, btrfs and its copies, XFS and what became of it, ext2's versions, FAT, f2fs. */
static const unsigned char file_kinds[] = {'f', 0x94, 'X', 'v', 'r', 0xf5};

/* Those that only ask (by number; sizes differ between programs of 32 and 64 bits), or write into a descriptor that must be open for
 * writing. */
static const struct { unsigned char kind, number; } harmless[] = {
	{'f', 1},	/* FS_IOC_GETFLAGS */
	{'f', 11},	/* FS_IOC_FIEMAP */
	{'f', 134},	/* FS_IOC_MEASURE_VERITY */
	{0x94, 9},	/* FICLONE */
	{0x94, 13},	/* FICLONERANGE */
	{0x94, 49},	/* FS_IOC_GETFSLABEL */
	{'X', 31},	/* FS_IOC_FSGETXATTR */
	{'v', 1},	/* FS_IOC_GETVERSION */
	{'r', 1},	/* VFAT_IOCTL_READDIR_BOTH */
	{'r', 2},	/* VFAT_IOCTL_READDIR_SHORT */
	{'r', 16},	/* FAT_IOCTL_GET_ATTRIBUTES */
};

#define KIND_AND_NUMBER	0xffffu
#define NS_FLAGS	(0x00020000u | 0x10000000u)	/* CLONE_NEWNS, CLONE_NEWUSER */

#define MOST (4 * N_CALLS + 128)

struct program {
	struct sock_filter code[MOST];
	unsigned short n;
	struct { unsigned short at; enum what to; } jumps[2 * N_CALLS + 8];
	size_t n_jumps;
};

static void emit(struct program *p, unsigned short code, uint32_t k, unsigned char yes, unsigned char no)
{
	p->code[p->n++] = (struct sock_filter){code, yes, no, k};
}

static void load(struct program *p, size_t offset)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* The low half comes first on both processors. */
static void load_arg(struct program *p, int arg, bool high)
{
	load(p, offsetof(struct seccomp_data, args) + 8 * (size_t)arg + (high ? 4 : 0));
}

static void answer(struct program *p, uint32_t with)
{
	emit(p, BPF_RET | BPF_K, with, 0, 0);
}

static uint32_t fails(int error)
{
	return SECCOMP_RET_ERRNO | (uint32_t)error;
}

/* A long jump, whose length is filled in when the target is known. */
static void jump(struct program *p, enum what to)
{
	p->jumps[p->n_jumps].at = p->n;
	p->jumps[p->n_jumps++].to = to;
	emit(p, BPF_JMP | BPF_JA, 0, 0, 0);
}

static void land(struct program *p, enum what here)
{
	for (size_t i = 0; i < p->n_jumps; i++)
		if (p->jumps[i].to == here)
			p->code[p->jumps[i].at].k = (uint32_t)(p->n - p->jumps[i].at - 1);
}

static void list(struct program *p, bool native, bool truncates)
{
	load(p, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < N_CALLS; i++) {
		int number = native ? calls[i].NUMBER : calls[i].i386;
		enum what what = calls[i].what;

		if (number < 0 || (!truncates && (what == OPEN2 || what == OPEN3 || what == OPENHOW)))
			continue;
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1);
		jump(p, !native && what == PASS ? NEVER : what == OPENHOW ? ABSENT : what);
	}
	answer(p, SECCOMP_RET_ALLOW);
}

static void pass_block(struct program *p, uint64_t pass)
{
	land(p, PASS);
	load_arg(p, 5, false);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)pass, 0, 3);
	load_arg(p, 5, true);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(pass >> 32), 0, 1);
	answer(p, SECCOMP_RET_ALLOW);
	land(p, NEVER);
	answer(p, fails(EPERM));
}

static void ioctl_block(struct program *p)
{
	land(p, IOCTL);
	load_arg(p, 1, false);
	emit(p, BPF_ALU | BPF_AND | BPF_K, KIND_AND_NUMBER, 0, 0);
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)harmless[i].kind << 8 | harmless[i].number, 0, 1);
		jump(p, ALLOW);
	}
	emit(p, BPF_ALU | BPF_RSH | BPF_K, 8, 0, 0);
	for (size_t i = 0; i < sizeof(file_kinds); i++) {
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, file_kinds[i], 0, 1);
		answer(p, fails(EPERM));
	}
	answer(p, SECCOMP_RET_ALLOW);
}

/* O_TRUNC without being open for writing: what Landlock did not take for a change. */
static void open_blocks(struct program *p)
{
	land(p, OPEN2);
	load_arg(p, 1, false);
	jump(p, EMPTIES);
	land(p, OPEN3);
	load_arg(p, 2, false);
	land(p, EMPTIES);
	emit(p, BPF_ALU | BPF_AND | BPF_K, O_TRUNC | O_ACCMODE, 0, 0);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, O_TRUNC | O_RDONLY, 1, 0);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, O_TRUNC | O_ACCMODE, 0, 1);
	answer(p, fails(EACCES));
	answer(p, SECCOMP_RET_ALLOW);
}

static void blocks(struct program *p, uint64_t pass)
{
	pass_block(p, pass);
	ioctl_block(p);
	open_blocks(p);
	land(p, ABSENT);
	answer(p, fails(ENOSYS));
	land(p, SPACES);
	load_arg(p, 0, false);
	emit(p, BPF_JMP | BPF_JSET | BPF_K, NS_FLAGS, 0, 1);
	answer(p, fails(EPERM));
	land(p, ALLOW);
	answer(p, SECCOMP_RET_ALLOW);
}

static void build(struct program *p, uint64_t pass, bool truncates)
{
	unsigned short skip;

	load(p, offsetof(struct seccomp_data, arch));
#ifdef OTHERS
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, OTHERS, 0, 1);
	skip = p->n;
	emit(p, BPF_JMP | BPF_JA, 0, 0, 0);
#endif
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0);
	answer(p, SECCOMP_RET_KILL_PROCESS);
#ifdef X32_BIT
	load(p, offsetof(struct seccomp_data, nr));
	emit(p, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
	answer(p, fails(ENOSYS));
#endif
	list(p, true, truncates);
#ifdef OTHERS
	p->code[skip].k = (uint32_t)(p->n - skip - 1);
	list(p, false, truncates);
#else
	(void)skip;
#endif
	blocks(p, pass);
}

int fence_filter(uint64_t pass, bool truncates, struct err *e)
{
	struct program p;
	struct sock_fprog filter;

	memset(&p, 0, sizeof(p));
	build(&p, pass, truncates);
	filter = (struct sock_fprog){p.n, p.code};
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0)
		return 0;
	return err_set(e, -errno, "the kernel takes no filter on system calls (seccomp): %s", strerror(errno));
}
