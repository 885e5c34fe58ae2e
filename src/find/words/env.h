/* SPDX-License-Identifier: Apache-2.0
 * The machine as a text mentions it: nvidia-smi, torch.utils.collect_env, PyTorch's warnings, command lines, people's own words.
 */
#ifndef CUWHY_TEXT_ENV_H
#define CUWHY_TEXT_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "case/case.h"

/* What people typed and what it printed: ">>> torch.cuda.is_available()", "False" on the next line; also "is_available(): False",
 * f"{x=}", IPython's "Out[1]:", and several values of one print. */

#define SNIPPETS_MAX	8	/* answers that are kept */
#define SNIPPET_ASKED	4	/* expressions in one line */

/* What can be typed; the order is that of the list in snippet.c. */
enum snippet_id {
	SNIPPET_AVAILABLE, SNIPPET_DEVICE_COUNT, SNIPPET_TORCH_CUDA, SNIPPET_TORCH_HIP, SNIPPET_CAPABILITY, SNIPPET_ARCHS,
	SNIPPET_COUNT
};

struct snippet {
	enum snippet_id id;
	char answer[160];
	uint64_t line;		/* of the answer */
};

struct snippets {
	struct snippet list[SNIPPETS_MAX];
	size_t n;
	enum snippet_id asked[SNIPPET_ASKED];	/* by the line before, in order */
	size_t n_asked;
};

void snippets_line(struct snippets *s, const char *line, uint64_t number);

/* The last answer to it; NULL: none was printed. */
const struct snippet *snippets_find(const struct snippets *s, enum snippet_id id);
const char *snippet_typed(enum snippet_id id);

/* Settings in a text: options of a command line, rows of a configuration, arguments in code, variables (kb/settings.def), each with its
 * place, so that an answer can quote it. */

#define SETTINGS_MAX	32

struct setting {
	enum fact_id fact;
	double number;		/* or yes and no as 1 and 0 */
	char text[96];		/* or a word */
	const char *file;
	uint64_t line;
	char said[160];		/* "--batch-size 8" */
};

struct settings {
	struct setting list[SETTINGS_MAX];
	size_t n;
};

/* `file`: its name stays. */
void settings_line(struct settings *t, const char *s, const char *file, uint64_t line);

void facts_of_settings(struct casefile *c, const struct settings *t);

/* Facts that a line says as yes or no: the rows of kb/log_facts.def. */

enum {
#define LIST(fact) SAYS_##fact,
#define SAID(fact, words)
#define WRITTEN(fact, words)
#include "kb/log_facts.def"
	SAID_FACTS
};

/* The line that says it first. */
struct said_place {
	const char *file;
	uint64_t line;
	char text[200];
};

struct said_facts {
	uint64_t said;	/* a bit for each */
	struct said_place place[SAID_FACTS];
};

/* `file` stays. */
void said_facts_line(struct said_facts *f, const char *s, const char *file, uint64_t line);
/* The line says so by how it is built. */
void said_facts_add(struct said_facts *f, int which, const char *s, const char *file, uint64_t line);

static inline bool said_fact(const struct said_facts *f, int which)
{
	return f->said >> which & 1;
}

void facts_of_said(struct casefile *c, const struct said_facts *f);

/* The compute mode of each GPU, as nvidia-smi shows it: as a table, or with -q. */

#define COMPUTE_MODES_MAX 64

/* All zero is none. */
struct compute_modes {
	const char *mode[COMPUTE_MODES_MAX];	/* "default", "exclusive-process", …; NULL: not shown */
	int n;			/* one more than the highest GPU with a mode */
	int row;		/* one more than the GPU whose rows follow; 0: not known */
	int listed;		/* sections of -q so far */
};

void compute_modes_line(struct compute_modes *m, const char *s);

/* Of GPU `device`; of all of them if it is -1. "": it is not shown, or they differ. */
const char *compute_mode_of(const struct compute_modes *m, int device);

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
	struct {
		bool open;
		bool code;		/* the last line was a frame: the line of code follows */
		char place[280];	/* the innermost frame of the user's own so far, file:line */
	} forward;			/* the traceback that anomaly mode prints */
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

/* Parts of env_line(), each in a file of its own. */
void env_read_versions(struct text_env *e, const char *s);
void env_read_gpu(struct text_env *e, const char *s);
void env_read_numbers(struct text_env *e, const char *s);
void env_read_memory(struct text_env *e, const char *s, uint64_t number);
uint32_t env_hash_letters(const char *s, const char *end);

#endif
