/* SPDX-License-Identifier: Apache-2.0
 * The case: everything known about one failure. Inputs observe into it, rules and judge read it, writers print it.
 * Several inputs may observe into one case: what an earlier one set stays.
 */
#ifndef CUWHY_CASE_H
#define CUWHY_CASE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/pool.h"
#include "case/line.h"

/* The value of a fact or an expression: a number, a text, yes or no, three numbers, or not known. */

enum value_type { TYPE_NUMBER, TYPE_TEXT, TYPE_FLAG, TYPE_TRIPLE };

/* Numbers are doubles: exact up to 2^53, which is more than any byte count seen on a GPU. */
struct value {
	bool known;
	bool absent;		/* no input observed the group of the fact: known (there is none), or not applicable */
	enum value_type type;
	double number;		/* NUMBER; FLAG: 0 or 1 */
	const char *text;	/* TEXT: borrowed, lives as long as the case */
	uint32_t triple[3];	/* TRIPLE: a grid, a block; not for expressions */
};

static inline struct value value_number(double number)
{
	return (struct value){.known = true, .type = TYPE_NUMBER, .number = number};
}

static inline struct value value_text(const char *text)
{
	return (struct value){.known = true, .type = TYPE_TEXT, .text = text};
}

static inline struct value value_flag(bool flag)
{
	return (struct value){.known = true, .type = TYPE_FLAG, .number = flag};
}

static inline struct value value_unknown(enum value_type type)
{
	return (struct value){.type = type};
}

/* No input observed it: known to be none (no, "", 0), or not applicable. */
static inline struct value value_none(enum value_type type)
{
	return (struct value){.known = true, .absent = true, .type = type, .text = ""};
}

static inline struct value value_inapplicable(enum value_type type)
{
	return (struct value){.absent = true, .type = type};
}

static inline bool value_applies(struct value v)
{
	return v.known || !v.absent;
}

struct ledger;
struct live;

enum group_id {
#define GROUP(id, text) GROUP_##id,
#define FACT(id, name, type, json, text)
#define LINE(id, json, text)
#include "case/case.def"
	GROUP_COUNT
};

enum fact_id {
#define GROUP(id, text)
#define FACT(id, name, type, json, text) FACT_##id,
#define LINE(id, json, text)
#include "case/case.def"
	FACT_COUNT
};

enum line_id {
#define GROUP(id, text)
#define FACT(id, name, type, json, text)
#define LINE(id, json, text) LINE_##id,
#include "case/case.def"
	LINE_COUNT
};

/* Evidence and advice. */
struct said {
	struct said *next;
	const char *source;	/* evidence: who says it */
	const char *text;
	const char *command;	/* advice: may be NULL */
};

/* A block of PyTorch's, or an allocation of the driver's. */
struct piece_line {
	bool known;
	uint64_t address, size;
	int device;		/* -1 = not known */
	struct line made, freed;
	bool freed_after;	/* not at that line, but some time after it */
};

/* Threads of a running kernel that stopped at the same place. */
struct standing {
	const char *pc;
	size_t threads;
};

/* A line whose launches may have caused an asynchronous error. */
struct suspect_line {
	struct line line;	/* `file` NULL = no line is known */
	const char *kernel;	/* may be NULL */
	uint32_t launches;
};

/* A tensor that the failing function had: what is in it is not known. */
#define TENSOR_DIMS 8
struct tensor_seen {
	const char *name;	/* as the code names it: x, batch["labels"], xs[0] */
	const char *dtype, *device, *shape;
	int64_t dim[TENSOR_DIMS];
	size_t n_dims;
	bool used;		/* the line at `where` has its name */
};

/* A Python object that keeps tensors alive. */
struct holder_seen {
	const char *path;	/* "trainer.metrics.history" */
	const char *kind;	/* "list"; "" = there are several such objects */
	uint64_t length;	/* items; 0 = it has none */
	uint64_t bytes, graph;	/* graph: of these, by way of autograd graphs and gradients */
	uint64_t gradients;	/* of these, gradients */
	uint64_t used;		/* of `bytes`, what tensors have elements in; 0 = not known */
	uint32_t tensors, blocks;
	struct line of;		/* whose variable the path begins with; `file` NULL = a module's */
	struct line made;	/* where most of the bytes were allocated; `file` NULL = at several places */
};

/* Memory to which no Python object leads. */
struct unheld_seen {
	const char *what;	/* "backward", "gradients", "cuda-graph", "workspace", "other" */
	uint64_t bytes;
	uint32_t blocks;
	struct line made;	/* as above */
};

/* A thread that waited too long for the GPU. */
struct waiting {
	uint32_t tid;
	const char *api;
	uint64_t seconds;
	bool polls;		/* it polled instead of waiting in one call that does not return */
	struct line line;	/* `file` NULL = not known */
	struct line *stack;
	size_t n_stack;
};

/* A line that a cause may blame (`blames:` in its file), instead of the one that happened to fail. */
#define BLAMED(X) X(graphs) X(growth) X(library) X(pools)
enum blamed_id {
#define X(name) BLAMED_##name,
	BLAMED(X)
#undef X
	BLAMED_COUNT
};
struct blamed {
	struct line line, caller;	/* `file` NULL = none */
	struct line *stack;
	size_t n_stack;
};

/* Words that a text has: a rule may look for them. */
struct text_hit {
	uint64_t count, line;
	const char *text;	/* the first line that contains it; NULL = none */
	const char *file;
	const char *words;
};

/* A cause whose reports have words in common with a text. */
struct likeness {
	const char *cause;
	const char *words;	/* the most telling ones */
	double weight;		/* of all of them: the logarithm of how much they speak for it; only differences count */
};
#define LIKENESS_MAX 128	/* at least one a cause */

#define CONTRADICTIONS_MAX 4

struct casefile {
	struct pool *pool;	/* holds the texts */
	const char *observer;	/* the input that sets facts now; NULL = none in particular */
	struct value value[FACT_COUNT];
	const char *origin[FACT_COUNT];
	const char *place[FACT_COUNT];	/* "train.log line 12: the words that say it"; NULL = not of a text, or not at one place */
	bool observed[GROUP_COUNT];
	struct line line[LINE_COUNT];
	struct line *stack;	/* of `where`, innermost first */
	size_t n_stack;
	struct blamed blamed[BLAMED_COUNT];
	struct line *or;	/* lines that cannot be told apart from `where` */
	size_t n_or;
	const char *no_lines;	/* why there is no line; NULL when there is one, or when it is not known */
	/* the fault */
	uint64_t fault_address;	/* FACT_fault_address as a number */
	struct piece_line block, segment;	/* PyTorch's block at or near the address, and the segment around it */
	struct standing *standing;	/* of a kernel that was running: most threads first */
	size_t n_standing, elsewhere, warps, blocks;
	struct suspect_line *suspects;	/* newest first */
	size_t n_suspects;
	struct tensor_seen *tensors;	/* of the function at `where` */
	size_t n_tensors;
	bool tensors_late;	/* as they were when the failure was noticed */
	struct holder_seen *holders;	/* the most bytes first */
	size_t n_holders;
	bool holders_whole;	/* all objects of the program were looked at, or all of the memory explained */
	struct unheld_seen *unheld;
	size_t n_unheld;
	uint64_t unheld_bytes, unheld_blocks;	/* live, but none of the objects leads there: C++ alone keeps it */
	struct waiting *waiting;	/* the longest wait first */
	size_t n_waiting;
	const struct ledger *ledger;	/* NULL = not known who held the memory */
	const struct live *live;	/* NULL = it is not a running process */
	struct said *evidence;
	const char *contradiction[CONTRADICTIONS_MAX];	/* who says what, in words */
	size_t n_contradictions;
	const struct text_hit *hits;	/* of the words that rules look for, those that the text has, by words */
	size_t n_hits;
	struct likeness like[LIKENESS_MAX];	/* the most alike first */
	size_t n_like;
	enum {
		LIKE_BEHIND_RULES,	/* where no rule matches, nothing is known to have failed */
		LIKE_BEHIND_UNKNOWN,	/* what failed is not in the text: the words are of what led there */
		LIKE_FIRST		/* the text reports a failure */
	} like_place;
};

/* Nothing is known yet and no group was observed. */
void case_init(struct casefile *c, struct pool *pool);

/* The words of a recording: what they do not have, a log may. */
#define EXCEPTION_OBSERVER "exception"

/* From now on facts are set by this input. */
const char *case_observer(struct casefile *c, const char *name);	/* returns the previous one */

/* The group was examined: what is not set is unknown, not absent. Setting a fact observes its group. */
void case_observe(struct casefile *c, enum group_id group);
bool case_observed(const struct casefile *c, enum group_id group);

void fact_set_number(struct casefile *c, enum fact_id id, double number);
void fact_set_flag(struct casefile *c, enum fact_id id, bool flag);
void fact_set_text(struct casefile *c, enum fact_id id, const char *text);	/* copied; NULL = unknown */
void fact_set_triple(struct casefile *c, enum fact_id id, const uint32_t v[3]);

/* Where the text says it. */
void fact_set_place(struct casefile *c, enum fact_id id, const char *place);

void case_evidence(struct casefile *c, const char *source, const char *text);

/* Two inputs cannot both be right: "the core dump says …, the recording …". Those that set one fact to different values are noticed by themselves,
 * if it is one that each of them knows for itself. */
void case_contradiction(struct casefile *c, const char *told);

/* A copy that lives as long as the case; NULL for NULL and "". */
const char *case_keep(struct casefile *c, const char *text);

/* `where` becomes the line to blame, and what it was becomes `asked`. */
void case_blame(struct casefile *c, enum blamed_id whom);

/* Who holds what. Call it after the messages have been read: they may say what the recording does not. */
void case_memory_parts(struct casefile *c);

/* Where the text has these words; NULL: it does not have them, or there is no text. */
const struct text_hit *case_hit(const struct casefile *c, const char *words);

/* The user's own lines that led to `where`, n = 0 the innermost; NULL when there are not that many. */
const struct line *case_caller(const struct casefile *c, size_t n);
const struct line *line_caller(const struct line *where, const struct line *stack, size_t n_stack, size_t n);

/* -1 when there is no such fact. */
int fact_find(const char *name, size_t len);
const char *fact_name(enum fact_id id);
const char *fact_json_key(enum fact_id id);	/* "error.code"; "" = not in the JSON */
enum value_type fact_type(enum fact_id id);
enum group_id fact_group(enum fact_id id);

/* As rules see it: absent where no input observed its group. */
struct value fact_value(const struct casefile *c, enum fact_id id);
bool fact_known(const struct casefile *c, enum fact_id id);
double fact_number(const struct casefile *c, enum fact_id id, double otherwise);
const char *fact_text(const struct casefile *c, enum fact_id id);	/* "" when unknown */
const char *fact_text_or_null(const struct casefile *c, enum fact_id id);	/* NULL when unknown or "" */
bool fact_true(const struct casefile *c, enum fact_id id);		/* known and yes */
const char *fact_origin(const struct casefile *c, enum fact_id id);	/* NULL when unknown, or set by no particular input */
const char *fact_place(const struct casefile *c, enum fact_id id);	/* NULL when unknown */
/* Did the error of this case come from this input? */
bool case_is_from(const struct casefile *c, const char *observer);

/* All facts, by group, as Markdown: for people who write causes. */
void facts_document(FILE *out);

#endif
