/* SPDX-License-Identifier: Apache-2.0
 * One line on stderr that says what is taking so long, after the first second. Only on a terminal, and never after
 * progress_disable (--json). The line is erased before anything else is written.
 *
 * It is drawn from a timer signal, so that the code at work needs no hook: system calls are restarted, and those that
 * are not (poll) must be in a loop.
 */
#ifndef CUWHY_PROGRESS_H
#define CUWHY_PROGRESS_H

#include <stdint.h>

void progress_disable(void);

/* What is being done: "reading 'train.log'". If already active, only the text changes. */
void progress_begin(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* How much there is to do (0 = not known), and how much is done. Both are optional. */
void progress_total(uint64_t total);
void progress_add(uint64_t more);
void progress_at(uint64_t done);

/* Erases the line. Does nothing if there is none. */
void progress_end(void);

#endif
