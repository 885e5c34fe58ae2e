/* SPDX-License-Identifier: Apache-2.0
 * Where a line names an exception.
 */
#ifndef CUWHY_TEXT_EXCEPTION_H
#define CUWHY_TEXT_EXCEPTION_H

#include <stdbool.h>
#include <stddef.h>

/* Does it end like the name of an exception? */
bool exception_name(const char *s, size_t n);

/* "RuntimeError: message", "torch.cuda.OutOfMemoryError: …", "KeyboardInterrupt". Ray: "RayTaskError(ValueError): ". `*name` is the
 * name's length. Inside a traceback, other names may be exceptions, too. */
bool exception_line(const char *s, bool in_traceback, size_t *name);

/* Python raises it itself, and what it is about is in its name: "KeyError", "ImportError". Not RuntimeError, which is what errors of C++ become. */
bool exception_of_python(const char *type);

/* "x.py:128: UserWarning: message", "Process failed: RuntimeError: message": an exception within a line; NULL when there is none. */
const char *exception_within(const char *s, size_t *name);

#endif
