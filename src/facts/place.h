/* SPDX-License-Identifier: Apache-2.0
 * Lines of Python: whose code a frame is, and which frame of a stack the user should look at.
 */
#ifndef CUWHY_PLACE_H
#define CUWHY_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/pool.h"

struct trace;
struct cw_failure;

enum owner {
	OWNER_USER,
	OWNER_LIBRARY,
	OWNER_STDLIB,
	OWNER_GENERATED,
	OWNER_TORCH,
	OWNER_TRITON,
	OWNER_CUPY
};

struct place {
	const char *file;	/* as the program knew it; NULL = not known */
	const char *function;
	uint32_t line, first_line;	/* first_line: of the function, its decorators included */
	bool library;		/* not the user's own code: nothing better was there */
	uint32_t stack;		/* the stack it was found in */
};

/* `torch_path`: where libtorch was loaded from, may be "". */
enum owner frame_owner(const char *file, const char *torch_path);

/* The innermost frame of the user's own code; else the innermost outside torch, triton and cupy,
 * marked as library; else nothing (false). */
bool place_of_stack(const struct trace *t, uint32_t stack, struct place *p);

/* The user's lines that led to it: "train.py:28, from train.py:34"; "" when there are none. */
const char *place_callers(const struct trace *t, const struct place *p, struct pool *pool);

/* The innermost frame outside PyTorch: the user's own or a library's. */
bool place_of_caller(const struct trace *t, uint32_t stack, struct place *p);

/* "Model.forward" and "make.<locals>.run" -> "forward", "run": recordings hold qualified names. */
const char *function_base(const char *qualified);

/* The same file and line. */
bool place_same(const struct place *a, const struct place *b);

/* Does the stack hold a frame of PyTorch's backward()? */
bool stack_in_backward(const struct trace *t, uint32_t stack);

/* Did it happen in a backward, Python's or that of the engine's threads? */
bool failure_in_backward(const struct trace *t, const struct cw_failure *f);

/* The innermost frame of `stack` is a frame of `of`, line for line. */
bool stack_top_within(const struct trace *t, uint32_t stack, uint32_t of);

/* The operator of PyTorch that the user called: the public function nearest to the top of the
 * stack; NULL when the stack does not tell. */
const char *stack_torch_op(const struct trace *t, uint32_t stack);

/* Whose code is on top of the stack. OWNER_USER when there is no stack. */
enum owner stack_top_owner(const struct trace *t, uint32_t stack);

/* Code that torch.compile rewrote says only where its function begins, at the decorator: move on to the
 * line of the def. */
void place_skip_decorators(struct place *p, const char *cwd, struct pool *pool);

/* The file as people want to see it: relative to the folder the program ran in, where it is below it. */
const char *file_shown(const char *file, const char *cwd);

/* A file of source code, to be read; NULL when there is no such ordinary file. */
FILE *source_open(const char *file, const char *cwd);

/* The text of the line, without its indentation, from the file as it is now; NULL when it cannot be
 * read. Relative names are looked up in `cwd`. */
char *place_source(const struct place *p, const char *cwd, struct pool *pool);

#endif
