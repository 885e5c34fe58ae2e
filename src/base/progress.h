/* SPDX-License-Identifier: Apache-2.0
 * One line on stderr that says what takes so long, from the second second on. Only on a terminal, and never after
 * progress_disable (--json). The line is gone before anything else is written.
 *
 * It is drawn from a timer's signal, so that whatever works needs no hook: system calls are restarted, and those that
 * are not (poll) must be in a loop.
 */
#ifndef CUWHY_PROGRESS_H
#define CUWHY_PROGRESS_H

#include <stdint.h>

void progress_disable(void);

/* What is being done: "reading 'train.log'". While one is under way: only the words change. */
void progress_begin(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* How much there is to do, 0 = not known, and that some of it is done. Neither is needed. */
void progress_total(uint64_t total);
void progress_add(uint64_t more);
void progress_at(uint64_t done);

/* Takes the line away. Nothing happens when there is none. */
void progress_end(void);

#endif
