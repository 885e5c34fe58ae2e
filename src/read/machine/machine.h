/* SPDX-License-Identifier: Apache-2.0
 * Everything known about one machine: its files, its environment variables, what the driver answers, its Python environments
 * and the GPU code in their libraries. Collected here and now, or read from a bundle from elsewhere.
 */
#ifndef CUWHY_MACHINE_H
#define CUWHY_MACHINE_H

#include <jansson.h>

#include "base/pool.h"
#include "compat/compat.h"
#include "formats/fatbin.h"
#include "read/machine/host.h"
#include "read/machine/variables.h"
#include "probe/probe.h"
#include "read/machine/pyenv/process.h"
#include "read/machine/pyenv/pyenv.h"

struct err;

#define BUNDLE_VERSION	1

/* GPU code in one library of a Python environment. */
struct machine_code {
	size_t env;			/* index of the environment */
	const char *path;
	const char *package, *version;	/* NULL = not known */
	bool torch;			/* PyTorch's own libtorch_cuda.so */
	const struct fatbin *fatbin;	/* NULL: it could not be read, see `reason` */
	const char *reason;
};

/* The assembler that Triton would use. */
struct machine_ptxas {
	size_t env;
	const char *path;
	int cuda;			/* 12080 = 12.8; 0 = not known */
};

struct machine {
	struct pool pool;
	bool bundle;			/* read from one, not collected here */
	const char *made_by;		/* "cuwhy 1.2"; NULL = not known */
	struct host host;
	bool bus_known, nodes_known;	/* false: an empty list of GPUs or nodes in `host` says nothing */
	bool libcuda_sought;		/* the loader's search path was examined: a library that was not found does not exist */
	struct variables variables;
	struct gpu_usage *nvml;		/* NULL: not asked */
	struct cuda_answer cuda;	/* see `trouble`; in a bundle without it: library.init -1 and `cuda_asked` false */
	bool cuda_asked;
	struct pyenvs envs;
	struct machine_code *code;
	size_t n_code;
	struct machine_ptxas *ptxas;
	size_t n_ptxas;
	struct py_process process;	/* --pid */
	uint32_t pid;			/* 0: none was asked for */
	const char *const *environ;	/* of the program that is examined; NULL: not known */
	struct fatbin **owned;		/* read here, freed with the machine */
	size_t n_owned, cap_owned;
};

struct machine_from {
	const char *root;		/* "" = the live machine */
	const char *python;		/* --python; NULL */
	uint32_t pid;			/* --pid: its environment and libraries; 0 */
	const char *const *environ;	/* NULL: this process's own */
	uint64_t limit_ns;		/* for the driver to answer */
	bool no_driver;			/* do not ask it */
	bool no_python;
};

void machine_collect(struct machine *m, const struct machine_from *from);

/* Owned by the caller. Nothing is removed from it: bundle_redact_for does that. */
json_t *machine_to_json(const struct machine *m);

/* -errno with `e` filled: it is not a bundle, has a newer version, or a value of the wrong type. */
int machine_from_json(struct machine *m, const json_t *o, struct err *e);
int machine_load(struct machine *m, const char *path, struct err *e);

/* Removes user names, home folders, host names and program arguments from a bundle, and variables that may be secrets:
 * those of this process, and of the program with this environment (NULL: none). Says what it removed; owned by the caller. */
char *bundle_redact_for(json_t *bundle, const char *const *env);
char *bundle_list(const json_t *bundle);	/* what is in it, one line per part; owned by the caller */

void machine_release(struct machine *m);

#define MACHINE_GPUS_MAX 64

struct machine_gpu {
	size_t index;			/* NVML's, or the place in the list that it is from */
	const char *name;		/* NULL = not known */
	int cc;				/* 90 is 9.0; 0 = not known */
	enum compat_class class;
	const struct gpu_state *nvml;	/* NULL: not asked, or NVML does not have it */
	const struct cuda_device *cuda;	/* NULL: CUDA does not show it */
	const struct host_gpu *host;	/* NULL: not on the bus that was read */
	int ordinal;			/* CUDA's number; -1 */
};

/* How many there are: from NVML, else from CUDA, else from the bus. */
size_t machine_gpus(const struct machine *m);
void machine_gpu(const struct machine *m, size_t i, struct machine_gpu *g);

/* The driver version from every source that has it, for src/compat. */
struct compat_driver machine_driver(const struct machine *m);
int machine_driver_cuda(const struct machine *m);	/* 13000; 0 = not known */
int machine_newest_branch(const struct machine *m);	/* of drivers that support every GPU; 0 = not known */

/* The environment that is examined: the first one with PyTorch, else the active one; NULL when there is none. */
const struct pyenv *machine_env(const struct machine *m, size_t *index);

enum compat_machine machine_arch(const struct machine *m);

/* What src/compat is asked for a wheel that fits; `cc` has room for MACHINE_GPUS_MAX. `env` may be NULL. */
void machine_ask(const struct machine *m, const struct pyenv *env, int *cc, struct compat_ask *ask);

#endif
