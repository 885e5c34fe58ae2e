/* SPDX-License-Identifier: Apache-2.0
 * Which frame of a recorded stack the user should look at.
 */
#ifndef CUWHY_PLACE_H
#define CUWHY_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "case/line.h"

struct trace;
struct cw_failure;

/* Whose code frame `i` of the stack is. */
struct cw_stack;
enum owner stack_owner(const struct trace *t, const struct cw_stack *s, uint32_t i);

/* The source of code that was given on the command line; NULL if the frame is not of that code. */
const char *stack_typed(const struct trace *t, const struct cw_stack *s, uint32_t i);

/* The innermost frame of the user's own code; else the innermost outside torch, triton and cupy,
 * marked as library; else nothing (false). */
bool place_of_stack(const struct trace *t, uint32_t stack, struct place *p);

/* The user's lines that called it: "train.py:28, from train.py:34"; "" when there are none. */
const char *place_callers(const struct trace *t, const struct place *p, struct pool *pool);

/* The innermost of the user's own lines outside of the frame with this index. */
bool place_outside(const struct trace *t, uint32_t stack, uint32_t frame, struct place *p);

/* The innermost frame outside PyTorch: the user's own or a library's. */
bool place_of_caller(const struct trace *t, uint32_t stack, struct place *p);

/* Does the stack have a frame of PyTorch's backward()? */
bool stack_in_backward(const struct trace *t, uint32_t stack);

/* Did it happen in a backward, Python's or that of the engine's threads? */
bool failure_in_backward(const struct trace *t, const struct cw_failure *f);

/* The innermost frame of `stack` is a frame of `of`, line for line. */
bool stack_top_within(const struct trace *t, uint32_t stack, uint32_t of);

/* The operator of PyTorch that the user called: the public function nearest to the top of the
 * stack; NULL when the stack does not say. */
const char *stack_torch_op(const struct trace *t, uint32_t stack);

/* Whose code is on top of the stack. OWNER_USER when there is no stack. */
enum owner stack_top_owner(const struct trace *t, uint32_t stack);

#endif
