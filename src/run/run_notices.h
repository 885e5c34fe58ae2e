/* SPDX-License-Identifier: Apache-2.0
 * Processes that could not be recorded: what they say about it on the page that they share with us (struct cw_notices).
 */
#ifndef CUWHY_RUN_NOTICES_H
#define CUWHY_RUN_NOTICES_H

#include <stdbool.h>
#include <stddef.h>

struct cw_notices;

/* Creates the page in the folder of the socket; NULL if that fails, and then nothing is known. */
const struct cw_notices *notices_open(const char *dir);

/* The first one in words, and how many there are; false if there is none. */
bool notices_say(const struct cw_notices *n, char *text, size_t size);

#endif
