/* SPDX-License-Identifier: Apache-2.0
 * The machine as a text mentions it: nvidia-smi, torch.utils.collect_env, PyTorch's warnings, command lines, people's own words.
 */
#ifndef CUWHY_TEXT_ENV_H
#define CUWHY_TEXT_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "case/case.h"
#include "find/words/compute_mode.h"
#include "find/words/said_facts.h"
#include "find/words/setting.h"
#include "find/words/snippet.h"

#define ENV_TRACKS	16	/* kinds of lines whose memory figures are followed */
#define ENV_PIDS	64
#define ENV_NAMES	16	/* variables with known values */
#define ENV_PLACES	48	/* facts whose lines are kept: see env.c */

struct text_track {
	uint32_t shape;		/* hash of the line without its digits */
	double first, last;	/* bytes */
	unsigned rises, falls;
	uint64_t line;
};

struct text_pid {
	uint32_t pid;
	int gpu;
};

/* Where one of the things below is said first, or for the last time changed. */
struct text_place {
	const char *file;
	uint64_t line;		/* 0 = nowhere */
	uint64_t was;		/* the first bytes of the value */
	char text[200];
};

struct text_name {
	char name[16];
	double value;
};

/* "", -1 and 0 mean "not mentioned". */
struct text_env {
	char driver[32];		/* "470.141.03" */
	int driver_cuda;		/* 1000 * major + 10 * minor */
	char torch[48];			/* "2.7.0.dev20250310+cu124" */
	int torch_cuda;			/* of the build */
	int cuda;			/* some CUDA version is mentioned, but not whose */
	char gpu[64];			/* the first one named */
	int gpus;			/* how many there are */
	int capability;			/* 10 * major + minor, when known */
	int capability_min;		/* the least that the build supports */
	char arch_list[160];		/* "sm_50 sm_60 ..." */
	double start_free, start_total;	/* bytes on the fullest GPU when TensorFlow started; 0 */
	double start_seen;		/* total bytes of the GPU that it is just describing */
	double gpu_memory;		/* bytes of GPU memory, as people say it: "8 GB card"; 0 */
	struct said_facts said;
	char visible[64];		/* CUDA_VISIBLE_DEVICES */
	bool visible_set;
	int nproc;			/* processes on a machine */
	double memory_used, memory_total;	/* of the fullest GPU, bytes; -1 */
	int smi_gpu;			/* whose rows of nvidia-smi follow */
	struct compute_modes modes;
	size_t n_pids;			/* processes that use a GPU */
	struct text_pid pid[ENV_PIDS];
	struct text_track track[ENV_TRACKS];
	size_t n_tracks;
	unsigned rises;			/* of figures that never fell, after their first */
	char nvcc[16];			/* version of the local compiler */
	int device_max;			/* the highest "cuda:N"; -1 */
	double elements, largest;	/* of the tensors with known shapes: most elements, largest dimension; 0 */
	bool empty_here;		/* the line shows a tensor without elements */
	int migs;			/* MIG instances that are listed */
	double block;			/* threads per block in a launch; 0 */
	struct text_name name[ENV_NAMES];	/* "n = 65536" */
	size_t n_names;
	bool script;			/* lines of a script: "import torch" */
	struct snippets snippets;
	struct settings settings;
	bool asked_version;		/* it asked for PyTorch's version */
	double number;			/* the largest whole number that stands by itself; 0 */
	uint64_t seq_min, seq_max;	/* of collectives that timed out; 0 = none did */
	uint32_t op;			/* hash of their kind */
	bool ops_differ;
	struct text_place place[ENV_PLACES];
	double shm_size, shm_free;	/* bytes of /dev/shm, as df shows them; 0: not shown */
	uint64_t cuda_used_line, visible_line;	/* first use of CUDA in code, first setting of CUDA_VISIBLE_DEVICES in code; 0 */
};

void env_init(struct text_env *e);
/* `number`: in the order of all inputs; `line`: of this one, `file`, whose name stays. */
void env_line(struct text_env *e, const char *s, uint64_t number, const char *file, uint64_t line);

/* The place of the n-th fact, from 0; NULL: there are not that many. */
const struct text_place *env_place(const struct text_env *e, size_t n, enum fact_id *fact);

/* A memory figure that rose from line to line and never fell; NULL when there is none. */
const struct text_track *env_growth(const struct text_env *e);

/* Processes that use GPU 0 in addition to another GPU. */
size_t env_shared_pids(const struct text_env *e);
size_t env_first_pids(const struct text_env *e);	/* that use GPU 0 */

#endif
