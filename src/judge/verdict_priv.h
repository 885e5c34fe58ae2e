/* SPDX-License-Identifier: Apache-2.0
 * What is in a verdict: filled by verdict.c, printed by the writers, by nobody else.
 */
#ifndef CUWHY_VERDICT_PRIV_H
#define CUWHY_VERDICT_PRIV_H

#include <jansson.h>

#include "cuwhy/format.h"
#include "input/recording/incident.h"
#include "case/ledger.h"
#include "judge/verdict.h"
#include "rules/rules.h"

/* A line of code; `file` NULL = not known. */
struct line {
	const char *file, *function, *source;
	const char *shown;	/* the file, for people */
	uint32_t number;
	bool library;
};

struct wrap;

struct said {			/* evidence and advice */
	struct said *next;
	const char *source;	/* evidence: who says it */
	const char *text;
	const char *command;	/* advice: may be NULL */
};

struct kernel {
	bool known;
	const char *name, *short_name;
	uint32_t grid[3], block[3], shared;
	uint64_t stream;
	bool dims_known;
};

/* A block of PyTorch's, or an allocation of the driver's. */
struct piece_line {
	bool known;
	uint64_t address, size;
	int device;		/* -1 = not known */
	struct line made, freed;
	bool freed_after;	/* not at that line, but some time after it */
};

/* What a GPU core dump tells of the fault. */
struct fault {
	bool known;
	const char *what, *exception;	/* "an illegal memory access", "WARP_ILLEGAL_ADDRESS" */
	bool lane_known;
	uint32_t block[3], thread[3];	/* the first that faulted */
	size_t threads;			/* how many did */
	bool address_known;
	uint64_t address;
	const char *access, *space;	/* "write", "global"; NULL = not decoded */
	uint32_t bytes;
	const char *instruction, *pc;	/* "STG", "fill+0xe0"; NULL = not known */
	const char *in;			/* the fact "address.in"; NULL = not known */
	int param, param_byte, device;	/* the parameter that points there, the kernel's device; -1 = not known */
	struct piece_line piece, segment;	/* PyTorch's block, the driver's allocation around it */
	bool asserted;			/* a device-side assert: */
	const char *condition, *file, *function;	/* NULL = not known */
	const char *one_of;		/* the condition is one of these; NULL = known, or not at all */
	uint32_t line;			/* 0 = not known */
	/* of a kernel that was running: how much of it, and where, most threads first */
	struct standing *standing;
	size_t n_standing, elsewhere, warps, blocks;
};

/* A thread that waited for the GPU for too long. */
struct waiting {
	uint32_t tid;
	const char *api;
	uint64_t seconds;
	bool polls;		/* asked again and again, instead of one call that does not return */
	struct line line;	/* `file` NULL = not known */
	struct line *stack;
	size_t n_stack;
};

/* Threads that stand at one place. */
struct standing {
	const char *pc;
	size_t threads;
};

struct suspect_line {
	struct line line;	/* `file` NULL = no line is known */
	const char *kernel;	/* may be NULL */
	uint32_t launches;
};

/* Bytes; -1 = not known. */
struct memory_sums {
	bool known;
	double request, free, total, allocated, reserved, cache, live, not_torch, outside;
	const struct ledger *ledger;	/* NULL = the recording does not tell; its words are the verdict's */
};

struct verdict {
	struct pool pool;
	const struct cause *cause;
	enum certainty sure;
	const char *title;		/* with this failure's numbers */
	const char *because;
	/* the error */
	uint32_t code;			/* 0 = none */
	const char *name, *string, *api, *source, *text;
	uint32_t count;
	bool async;			/* an error of earlier work */
	bool alone;			/* a core dump without a recording */
	bool from_text;
	uint64_t text_line;		/* of the first error; 0 = none */
	const char *text_file;		/* the input that it stands in */
	struct line where, noticed, forward, backward, capture, replay;
	struct line caller;	/* the line of the user's own that called `where` */
	struct line *or;	/* lines that cannot be told apart from `where` */
	size_t n_or;
	struct line *stack;		/* innermost first */
	size_t n_stack;
	struct kernel kernel;
	struct fault fault;
	struct memory_sums memory;
	struct suspect_line *suspects;	/* of an asynchronous error, newest first */
	size_t n_suspects;
	size_t suspect_launches;	/* in all */
	struct waiting *waiting;	/* the longest wait first */
	size_t n_waiting;
	const char *node;
	struct said *why, *fix, *evidence;
	struct match *candidates;
	size_t n_candidates;
	const char **unchecked;
	size_t n_unchecked;
	const char *frames_off;		/* why there are no Python lines; NULL when there are */
	bool sim;
	struct doctor_check *checks;	/* of the machine, when the doctor looked at it */
	size_t n_checks;
	/* the process */
	uint32_t pid, ppid, rank;	/* rank CW_UNKNOWN = not set */
	bool exit_known;
	int exit, signal;
	const char *command;
	uint64_t time_ns, ended_ns;
	bool own;			/* the failure is its own: CUDA said so, not only an exception */
	const char *end_type, *end_text;	/* the exception that ended it; NULL = none was seen */
	uint32_t victim_of;		/* process that is to blame, 0 = it is nobody's victim */
	const char *victim_why;
	struct verdict *notes, *others;	/* lists by `next` */
	struct verdict *next;
};

/* Does the exception that ended it say that somebody else died? */
bool victim_speaks(const struct verdict *v);

const char *certainty_word(enum certainty c);

/* The verdict about one incident; the caller fills in the process. `c` may be NULL. */
struct verdict *verdict_of_incident(const struct incident *i, struct trace *t, const struct culprit *c);

/* What the dump says of the fault, into the verdict and the facts. */
void verdict_fault(struct verdict *v, struct casefile *f, const struct culprit *c);

/* Who waited, when the process waited for too long. */
void verdict_waiting(struct verdict *v, const struct trace *t);

/* The user's own lines that led to `where`, n = 0 the innermost; NULL when there are not so many. */
const struct line *verdict_caller(const struct verdict *v, size_t n);
struct line line_of_place(struct verdict *v, const struct trace *t, const struct place *p);
size_t lines_of_stack(struct verdict *v, const struct trace *t, uint32_t off, struct line **lines);

/* The same with the recording: the lines that launched the kernel, the memory that it accessed. `c` NULL: there is no dump. */
void verdict_join_dump(struct verdict *v, const struct incident *i, struct trace *t, const struct culprit *c, struct casefile *f,
		       struct scene *s);
/* Without a dump, the lines that launched work which may have failed. */
void verdict_suspects(struct verdict *v, const struct incident *i, struct trace *t, struct casefile *f, struct scene *s);

/* A copy that lives as long as the verdict; NULL for nothing and "". */
const char *verdict_keep(struct verdict *v, const char *text);

/* Which of its lanes is shown, and how many there are: memory may tell better than the dump. */
void verdict_thread(struct verdict *v, struct casefile *f, const struct culprit *c, size_t lane, size_t threads);

/* Who held the memory that could not be had, into the verdict and the facts. */
void verdict_memory(struct verdict *v, struct casefile *f, const struct incident *i, struct trace *t);

/* The words of a cause for these facts; `m` NULL: of the one that the verdict has. */
void verdict_of_cause(struct verdict *v, const struct match *m, const struct casefile *f);

/* Rules and words of the cause that fits the facts best. */
void verdict_judge(struct verdict *v, const struct casefile *f);
void verdict_evidence(struct verdict *v, const char *source, const char *text);
void verdict_why(struct verdict *v, const char *text);
void verdict_address_evidence(struct verdict *v, const struct casefile *f);

/* The kernel, the call, the fault (report_what.c). */
void text_what(struct wrap *w, const struct verdict *v);

/* What is said and advised, with its commands, behind a label (report_text.c). */
void text_said(struct wrap *w, const char *label, const struct said *s);

struct verdict *verdict_new(const char *cause);
void verdict_append(struct verdict **list, struct verdict *v);

#endif
