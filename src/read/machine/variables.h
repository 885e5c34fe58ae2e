/* SPDX-License-Identifier: Apache-2.0
 * Environment variables that change what CUDA, NCCL, PyTorch and related software do: which are set, who reads them,
 * and what is wrong with them. The known ones are rows of kb/variables.def.
 */
#ifndef CUWHY_VARIABLES_H
#define CUWHY_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

#define VARIABLES_MAX	512		/* that are of interest; the rest is left out, and `left_out` says so */
#define VALUE_MAX	4096		/* bytes of a value that are kept and checked */

enum var_kind {
	VAR_NOTE,		/* worth knowing: it changes how the program runs */
	VAR_OBSOLETE,		/* has a new name, or nothing reads it anymore */
	VAR_UNKNOWN,		/* no known program reads it: perhaps new, perhaps a typo */
	VAR_MISSPELT,		/* nothing reads it, and it looks like `other` */
	VAR_DANGEROUS,		/* slows programs down, hides errors or breaks them; useful for a while, but should not stay on */
	VAR_CONTRADICTS,	/* contradicts `other` */
	VAR_BAD_VALUE,		/* its reader rejects or ignores the value */
};					/* most serious last */

struct variable {
	const char *name;
	const char *value;		/* at most VALUE_MAX bytes, made UTF-8 without control bytes */
	size_t length;			/* of the real value */
	bool odd;			/* the value was truncated or had bytes that are not text */
	const char *reader;		/* "CUDA driver", "NCCL", "PyTorch"...; NULL: not a known variable */
};

struct var_finding {
	enum var_kind kind;
	const char *name;		/* of the variable */
	const char *other;		/* of another one that is meant or contradicts; or NULL */
	const char *text;		/* one sentence without full stop: what it does, or what is wrong with it */
	const char *advice;		/* a command ("unset X"), or NULL */
};

struct variables {
	struct variable *set;		/* those of interest, in the order of their names */
	size_t n_set;
	struct var_finding *finding;	/* most serious first */
	size_t n_findings;
	bool left_out;			/* there were more than VARIABLES_MAX */
	bool known;			/* false: the environment could not be read */
};

/* Checks the environment: "NAME=value" strings, NULL at the end. The same name twice: the first counts, as in libc.
 * NULL as `env`: not known. */
void variables_judge(struct variables *v, struct pool *pool, const char *const *env);

/* The environment of a process (0: this one) from `root`/proc: owned by the pool, NULL when it cannot be read. */
const char *const *variables_read(struct pool *pool, const char *root, int pid);

/* The value of a variable in such a list; NULL: not set, or empty. */
const char *environ_get(const char *const *env, const char *name);

bool variables_is_known(const char *name);	/* some program reads it: there is a row in kb/variables.def */
const struct variable *variables_find(const struct variables *v, const char *name);
const char *variables_get(const struct variables *v, const char *name);	/* NULL: not set */
const char *variables_kind_id(enum var_kind kind);	/* "bad-value" */

#define VISIBLE_MAX	64

struct visible_gpu {			/* a GPU as CUDA would number it without the variable */
	const char *uuid;		/* "GPU-..."; NULL: not known */
	const char *const *mig;		/* "MIG-..." of its compute instances, NULL at the end; NULL: no MIG, or not known */
};

enum visible_end {
	VISIBLE_END,			/* the whole list was used */
	VISIBLE_NOT_A_NUMBER,		/* neither a number nor GPU-... nor MIG-... */
	VISIBLE_NEGATIVE,		/* -1, NoDevFiles and the like: meant to hide */
	VISIBLE_NO_SUCH_GPU,		/* an index beyond the GPUs, or an id that none has */
	VISIBLE_AMBIGUOUS,		/* the beginning of an id that several have */
	VISIBLE_TWICE,			/* the same GPU again: CUDA then shows none at all */
	VISIBLE_MIXED,			/* numbers and ids, or GPU-... and MIG-... in one list */
	VISIBLE_MIG_SECOND,		/* a process can use one MIG instance only: this one and the rest are not seen */
};

struct visible {
	bool set;			/* false: all GPUs are seen, `n` is their number or -1 */
	int n;				/* devices that a program would see; -1: the machine's GPUs are not known */
	int gpu[VISIBLE_MAX];		/* for each of them, the index into the GPUs given; -1 not known */
	int wanted;			/* entries in the list */
	enum visible_end end;		/* why the list ended early */
	const char *stopped_at;		/* that entry, or NULL */
};

/* What a program sees with this value (NULL: not set). `n_gpus` < 0: the GPUs are not known, then any number is assumed to exist. */
void visible_parse(struct visible *out, struct pool *pool, const char *value, const struct visible_gpu *gpu, int n_gpus);
const char *visible_end_id(enum visible_end end);

#define ALLOC_ITEMS_MAX	32

struct alloc_item {
	const char *key, *value;	/* as written, without spaces */
	const char *mistake;		/* why PyTorch rejects it, or why it has no effect; NULL: fine */
	bool fatal;			/* the first use of CUDA ends with an error */
};

struct alloc_conf {
	const char *variable;		/* the variable that counts; NULL: none is set */
	struct alloc_item item[ALLOC_ITEMS_MAX];
	int n;
	const char *mistake;		/* of the text as a whole: brackets, no colon, too many items; NULL: none */
	int expandable_segments;	/* 1, 0; -1 not set */
	int64_t max_split_size_mb;	/* -1 not set */
	double garbage_collection_threshold;	/* -1 not set */
	double memory_fraction;		/* per_process_memory_fraction; -1 not set */
	const char *backend;		/* "native", "cudaMallocAsync"; NULL not set */
};

void alloc_conf_parse(struct alloc_conf *out, struct pool *pool, const char *variable, const char *value);

#endif
