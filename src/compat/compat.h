/* SPDX-License-Identifier: Apache-2.0
 * Compatibility of drivers, toolkits, GPUs, code inside libraries and PyTorch wheels. Rules over the tables kb/compat_*.def.
 *
 * The tables end somewhere: a driver, a release or a GPU that is newer than they are is "unknown", never "no".
 *
 * How versions are written here, as plain numbers:
 *   CUDA      1000 * major + 10 * minor, as cuDriverGetVersion reports it: 12080 is 12.8
 *   PTX       10 * major + minor: 87 is PTX ISA 8.7
 *   cc        10 * major + minor of the compute capability: 75 is 7.5, 120 is 12.0
 *   Python    100 * major + minor: 312 is 3.12
 * 0 is "not known" for all of them.
 */
#ifndef CUWHY_COMPAT_H
#define CUWHY_COMPAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "12.8" as 12080; 0 = no version. */
int compat_cuda_parse(const char *text);

struct compat_driver {		/* 580.65.06; major 0 = not known */
	int major, minor, patch;
};
#define COMPAT_ANY_RELEASE	999	/* as minor: of this branch, whichever it is */

/* Parses "580.65.06", "580.65" or "580" at the start of a text; no more of the number may follow. */
bool compat_driver_parse(const char *text, struct compat_driver *d);
int compat_driver_compare(struct compat_driver a, struct compat_driver b);	/* <0, 0, >0 */
/* "580.65.06", as NVIDIA writes it; "a driver of branch 580" is written "580". */
const char *compat_driver_text(struct compat_driver d, char text[32]);

/* The CUDA version of this driver. 0: its branch is not in the table (older or newer). */
int compat_driver_cuda(struct compat_driver d);
/* The branch is newer than everything in the table: what it can do beyond the newest one is not known. */
bool compat_driver_is_newer(struct compat_driver d);

enum compat_run {
	COMPAT_RUN_UNKNOWN,	/* driver or toolkit not known */
	COMPAT_RUN_NATIVE,	/* the driver is as new as the toolkit: everything works */
	COMPAT_RUN_MINOR,	/* minor-version compatibility: works, but PTX of this toolkit and its newest functions do not */
	COMPAT_RUN_FORWARD,	/* only with the cuda-compat package, which only data-center GPUs may use */
	COMPAT_RUN_NO,		/* a newer driver is needed */
};

/* Does a program built with this toolkit run on this driver? (Whether its code fits the GPU is another question.) */
enum compat_run compat_driver_runs(struct compat_driver d, int cuda);

struct compat_need {
	struct compat_driver least;	/* runs programs built with this toolkit, minor-version compatibility included */
	struct compat_driver full;	/* came with this toolkit */
};

/* The driver that a toolkit needs. False: the toolkit is not in the table and nothing is known about its major version. */
bool compat_driver_needed(int cuda, struct compat_need *need);

enum compat_class {
	COMPAT_CLASS_UNKNOWN,
	COMPAT_CLASS_GEFORCE,	/* and Titan */
	COMPAT_CLASS_WORKSTATION,	/* Quadro, RTX A…, RTX PRO */
	COMPAT_CLASS_DATACENTER,
	COMPAT_CLASS_JETSON,	/* and other systems on a chip */
};

struct compat_generation {
	const char *name;	/* "Volta" */
	int cc_first, cc_last;
	int last_branch;	/* the last driver branch that supports it; 0 = the newest does */
};

struct compat_capability {
	int cc;
	const char *name;	/* of cards that have it, to print: "T4, RTX 20xx" */
	int first_cuda;		/* the first toolkit that can compile for it; 0 = not known */
	int last_cuda;		/* the last one; 0 = the newest still does */
	bool tegra;		/* a system on a chip */
};

struct compat_gpu {
	uint16_t pci;		/* its PCI device id; 0 = none, a module */
	const char *name;	/* as the driver spells it, without "NVIDIA " in front */
	const char *chip;	/* "GA102" */
	int cc;
	enum compat_class class;
};

/* All NULL when it is not in the tables. */
const struct compat_generation *compat_generation(int cc);
const struct compat_capability *compat_capability(int cc);
/* From the device id alone, so it works without a driver. A card whose id is not listed is answered from the range
 * of ids of its chip: then `name` is NULL and `class` unknown. The answer is valid until the next call. */
const struct compat_gpu *compat_gpu_by_pci(uint16_t device);
/* "NVIDIA GeForce RTX 3090", "Tesla V100-SXM2-16GB", "H100 80GB HBM3". The answer's `name` is the pattern that matched. */
const struct compat_gpu *compat_gpu_by_name(const char *name);
/* As people write it: "RTX 5090", "rtx5090", "5090", "a100-40gb", "sm_120", "12.0". `shown` gets the driver's spelling, as far as it is
 * known. NULL: it cannot be told which one is meant. */
const struct compat_gpu *compat_gpu_by_words(const char *words, char *shown, size_t size);
/* Does a card's name contain this word ("GeForce", "Ti", "Laptop")? Case does not matter. */
bool compat_name_word(const char *word, size_t len);
/* GeForce, workstation or data center, by the words in the name, also for names that are not in the table. */
enum compat_class compat_class_of(const char *name);
/* May this card use the cuda-compat package? */
bool compat_class_forward(enum compat_class class);

/* The newest driver branch that supports this capability (580 for 7.0). 0 = capability not known. */
int compat_branch_for(int cc);
/* The oldest branch that can support this capability, from its first toolkit. 0 = not known. */
int compat_first_branch_for(int cc);
/* Can a driver of this version drive such a GPU? 1, 0, or -1 if the tables do not say. For GPUs that a driver does
 * not list: it supports any GPU that it lists. */
int compat_driver_supports(struct compat_driver d, int cc);

struct compat_target {
	int arch;		/* 90 */
	char suffix;		/* 'a' only this capability, 'f' its family, '\0' none */
};

enum compat_code {
	COMPAT_CODE_RUNS,
	COMPAT_CODE_OTHER_MAJOR,	/* machine code of another generation, or a higher minor */
	COMPAT_CODE_TOO_NEW,		/* PTX for a newer GPU than this one */
	COMPAT_CODE_SPECIFIC,		/* 'a' or 'f' of another GPU */
	COMPAT_CODE_PTX_VERSION,	/* the driver cannot read this version of PTX: error 222 */
	COMPAT_CODE_UNKNOWN,		/* capability, driver or PTX version not known */
	COMPAT_CODE_TEGRA,		/* discrete GPU code on a system on a chip or the reverse: not supported by NVIDIA */
};

/* Machine code (SASS) for this target on a device. */
enum compat_code compat_sass_runs(struct compat_target t, int cc);
/* PTX; `driver_cuda` is the driver's CUDA version (cuDriverGetVersion, or compat_driver_cuda). */
enum compat_code compat_ptx_runs(struct compat_target t, int ptx, int cc, int driver_cuda);
/* The PTX ISA version that a toolkit emits and a driver of that CUDA version reads; 0 = not known. */
int compat_ptx_of_cuda(int cuda);
/* The toolkit that first emitted this PTX version, so "needs a driver for CUDA N"; 0 = not known. */
int compat_cuda_of_ptx(int ptx);

enum compat_machine {
	COMPAT_X86_64,
	COMPAT_AARCH64,
};

struct compat_torch {
	const char *release;	/* "2.7" */
	int python_first, python_last;
	int python_free;	/* first Python with a free-threaded wheel (python3.13t); 0 = none */
	const char *vision;	/* torchvision "0.22"; NULL = not known */
	const char *audio;	/* torchaudio "2.7"; NULL = not known */
	const char *triton;	/* the release that it needs: "3.3"; "" = none, NULL = not known */
};

struct compat_wheel {
	const char *release;	/* "2.7" */
	const char *variant;	/* "cu128" */
	int cuda;
	enum compat_machine machine;
	bool is_default;	/* what `pip install torch` installs on this machine */
	bool experimental;
	const char *archs;	/* "75 80 86 90 100 120+PTX"; NULL = not known */
	bool measured;		/* read from the wheel itself, not from what was published about it */
};

const struct compat_torch *compat_torch(const char *version);	/* "2.7.1+cu128" or "2.7"; NULL = not in the table */
/* Are there wheels of this release for this Python (0: any)? */
bool compat_torch_has_python(const struct compat_torch *t, int python, bool free_threaded);
/* The wheel of "2.7.1+cu128": by version and CUDA version (0: by the "+cu128" of the version, else the default one). */
const struct compat_wheel *compat_wheel(const char *version, int cuda, enum compat_machine machine);
/* The i-th wheel, newest release first, the default variant first in each; NULL at the end. */
const struct compat_wheel *compat_wheel_at(size_t i);

struct compat_arch {
	struct compat_target target;
	bool ptx;		/* there is PTX for it, too */
};
/* The next item of a list such as "75 80 90a 120+PTX"; false at its end. */
bool compat_arch_next(const char **list, struct compat_arch *a);
/* Does the code of a wheel run on this GPU? the wheel's `cuda` decides its PTX version. */
enum compat_code compat_wheel_code(const struct compat_wheel *w, int cc, int driver_cuda);

enum compat_fit {
	COMPAT_FIT_NATIVE,	/* the driver is as new as the wheel's CUDA */
	COMPAT_FIT_MINOR,	/* runs by minor-version compatibility */
	COMPAT_FIT_FORWARD,	/* runs with the cuda-compat package, which the card may use */
	COMPAT_FIT_PTX,		/* runs, but all code is compiled from PTX at the first start */
	COMPAT_FIT_UNKNOWN,	/* no known problem, but something could not be checked */
	COMPAT_FIT_PYTHON,	/* refused from here on: no wheel for this Python */
	COMPAT_FIT_DRIVER,	/* the driver is too old, and a newer one for all GPUs here exists */
	COMPAT_FIT_DRIVER_NEVER,	/* the driver is too old, and no newer one supports the GPU */
	COMPAT_FIT_CODE,	/* no code for (one of) the GPUs */
};

struct compat_ask {
	struct compat_driver driver;	/* major 0: not known, or none installed yet */
	const int *cc;			/* of every GPU that must work */
	size_t n_cc;
	int python;			/* 312; 0 = any */
	bool free_threaded;		/* python3.13t and the like */
	enum compat_machine machine;
	bool forward;			/* the cards may use cuda-compat (compat_class_forward) */
	bool windows;			/* the driver is Windows' (WSL, too): its branches are the same, its minor numbers are others */
};

struct compat_choice {
	const struct compat_wheel *wheel;
	enum compat_fit fit;
	int cc;				/* the GPU that decided, COMPAT_FIT_CODE, _PTX and _DRIVER_NEVER; else 0 */
	char why[200];			/* one sentence to print, lower case, no full stop */
};

/* Ranks every wheel for this machine. Best first: those that run (no known trouble, stable before experimental, newest
 * release first, within it what the driver runs natively, then newest CUDA), then the rejected ones, newest first. Returns
 * how many there are (at most `max`). Does not check whether the driver supports the GPU at all (compat_driver_supports). */
size_t compat_recommend(const struct compat_ask *ask, struct compat_choice *out, size_t max);
#define COMPAT_CHOICES_MAX	200

/* The command that installs a wheel: "pip install torch==2.7.* --index-url …/cu128". */
const char *compat_wheel_command(const struct compat_wheel *w, char *text, size_t size);
/* The same on Windows, where the default wheel has no CUDA at all, and cmd.exe knows no single quotes. */
const char *compat_wheel_command_windows(const struct compat_wheel *w, char *text, size_t size);

#endif
