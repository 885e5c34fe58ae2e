/* SPDX-License-Identifier: Apache-2.0
 * Reads the messages of CUDA, PyTorch, Triton and CuPy: sizes, numbers, codes and lines named in them.
 */
#ifndef CUWHY_MESSAGE_H
#define CUWHY_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "case/case.h"

/* The number after `before`, "4,398,046" too. False when it is not there. */
bool message_number(const char *text, const char *before, double *number);

/* The size after `before`: "1.95 GiB", "512 bytes". */
bool message_bytes(const char *text, const char *before, double *bytes);

/* The size before `after`: "7.92 GiB total capacity". */
bool message_bytes_before(const char *text, const char *after, double *bytes);

/* The message mentions CUDA, so an exception with it is a CUDA failure. */
bool message_is_cuda(const char *text);

/* The message names this code, by name or in CUDA's words. */
bool message_has_code(const char *text, uint32_t code);

/* A Python traceback is printed in the message: it tells what happened in another place, often another process. */
bool message_has_traceback(const char *text);
/* This line is in that traceback. */
bool message_has_line(const char *text, const char *file, uint32_t line);

/* The code that the message names; 0 when none. */
uint32_t message_code(const char *text);

/* Facts that only a message has: the operands' shapes, sizes of an OOM, Triton's limits, the driver's
 * account of a refused launch. Sets only what is still unknown. */
void facts_from_message(struct casefile *f, const char *text);

#endif
