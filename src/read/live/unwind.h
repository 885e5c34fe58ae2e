/* SPDX-License-Identifier: Apache-2.0
 * Native stacks by unwind tables, with elfutils' libdw, which is loaded if the machine has it.
 */
#ifndef CUWHY_UNWIND_H
#define CUWHY_UNWIND_H

#include <stddef.h>
#include <stdint.h>

struct native_stack;
struct remote;
struct target;
struct unwinder;

#define UNWIND_MAX 64

/* NULL, with the reason in words: libdw is not there, or the process cannot be described to it. */
struct unwinder *unwind_open(const struct target *t, struct remote *r, const char **why);
void unwind_close(struct unwinder *u);

/* Addresses of code, innermost first; those of callers are inside the call. Returns how many. */
size_t unwind(struct unwinder *u, const struct native_stack *s, uint64_t pc[UNWIND_MAX]);

#endif
