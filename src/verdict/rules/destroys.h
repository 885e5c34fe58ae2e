/* SPDX-License-Identifier: Apache-2.0
 * Commands that must not be pasted on a guess: they remove packages or files, end programs, change the driver, reset hardware.
 */
#ifndef CUWHY_DESTROYS_H
#define CUWHY_DESTROYS_H

#include <stdbool.h>

struct pool;

bool command_destroys(const char *command);

/* The sentence that stands for such a fix, without its command, while the cause is not certain. */
const char *fix_to_confirm(const char *text, struct pool *pool);

#endif
