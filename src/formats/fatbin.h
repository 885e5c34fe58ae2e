/* SPDX-License-Identifier: Apache-2.0
 * The GPU architectures inside a shared library, from the headers of its fat binaries. Nothing is decompressed, and code
 * is not read: a library of a gigabyte takes milliseconds.
 *
 * A library holds many fat binaries, one per source file, and each holds machine code (SASS) and PTX for several
 * targets. A GPU finds all of its kernels only if *every* fat binary has something for it. Some are special on purpose, for
 * kernels that are called on that GPU alone: they have nothing but arch-specific targets (sm_90a), or targets of one
 * generation in a library that is otherwise made for several. The others are general: they decide whether a library covers a
 * GPU, and the special ones are listed separately.
 *
 * This holds for libraries whose files are all compiled the same way: libtorch_cuda*.so (before 2.0 the code is in
 * libtorch_cuda_cu.so and libtorch_cuda_cpp.so) and extensions. cuBLASLt, cuDNN and cuSPARSELt have kernels for single GPUs on
 * purpose, cuFFT has its own format, and libtorch_cuda_linalg.so (MAGMA, rarely used) has fewer architectures than PyTorch
 * itself: what these do not cover is not a problem.
 */
#ifndef CUWHY_FATBIN_H
#define CUWHY_FATBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/fatbin_entry.h"

struct buf;
struct err;

struct fatbin_target {
	enum fatbin_kind kind;
	int arch;		/* 90 */
	char suffix;		/* 'a', 'f' or '\0' */
	int ptx;		/* PTX ISA version, 87 is 8.7; 0 for other kinds */
	uint32_t in;		/* fat binaries that have it */
	uint32_t in_general;	/* of these, general ones */
};

struct fatbin_set {		/* fat binaries with the same targets are one set */
	uint32_t count;		/* how many there are */
	bool general;		/* not built only for one GPU or generation, see above */
	bool linked;		/* relocatable code (__nv_relfatbin): linked into another fat binary, not loaded by itself */
	const uint16_t *target;	/* indices into fatbin.target, ascending */
	size_t n;
};

struct fatbin {
	uint64_t bytes;		/* size of the file */
	uint32_t binaries;	/* fat binaries; 0: no GPU code of the usual kind, which proves nothing */
	uint32_t general;	/* how many are general */
	bool scanned;		/* no section headers: the whole file was searched for them */
	bool damaged;		/* some of it could not be read; what is here is not all */
	char why[120];		/* the first damage, in words; "" = none */
	struct fatbin_target *target;	/* SASS first, then PTX, LTO; by arch, suffix, version */
	size_t n;
	struct fatbin_set *set;	/* most frequent first */
	size_t n_sets;
};

/* Reads a library. NULL with `e` filled: missing, unreadable, not a regular file, or not 64-bit little-endian ELF. */
struct fatbin *fatbin_read(const char *path, struct err *e);
/* The same for bytes in memory (tests, fuzzing). */
struct fatbin *fatbin_from_bytes(const void *data, size_t len, struct err *e);
void fatbin_free(struct fatbin *f);

enum fatbin_cover {
	FATBIN_COVER_UNKNOWN,	/* no fat binary, or damaged, or the capability or driver is not known, or `tegra` */
	FATBIN_COVER_SASS,	/* machine code for all of it */
	FATBIN_COVER_JIT,	/* all of it runs, some compiled from PTX by the driver at the first start */
	FATBIN_COVER_PART,	/* most general fat binaries run, some do not: some kernels are missing */
	FATBIN_COVER_PTX_NEW,	/* there is PTX, but its version is too new for the driver (error 222) */
	FATBIN_COVER_NONE,	/* no kernel image (error 209) */
};

struct fatbin_coverage {
	enum fatbin_cover cover;
	uint32_t sass, jit, ptx_new, none, unknown;	/* the fat binaries that decide, each counted once */
	bool tegra;		/* code of a discrete GPU on a system on a chip or the reverse: NVIDIA does not support it */
	/* What the driver would pick in most fat binaries; arch 0 = nothing. */
	struct fatbin_target best;
};

/* Checks a library against one device (cc 90 is 9.0) and a driver's CUDA version (12080 is 12.8; 0 = not known). */
struct fatbin_coverage fatbin_covers(const struct fatbin *f, int cc, int driver_cuda);

/* "sm_75 sm_80 sm_90 compute_120", as torch.cuda.get_arch_list() writes them: those that most general fat binaries have, or
 * (`general` false) the extras. */
void fatbin_archs(const struct fatbin *f, bool general, struct buf *text);

#endif
