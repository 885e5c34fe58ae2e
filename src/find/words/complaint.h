/* SPDX-License-Identifier: Apache-2.0
 * Failures that are described in a sentence instead of shown: "GPU memory grows until it runs out".
 */
#ifndef CUWHY_TEXT_COMPLAINT_H
#define CUWHY_TEXT_COMPLAINT_H

#include <stdbool.h>

/* It names a GPU, or what belongs to one. */
bool names_gpu(const char *s);

/* A sentence, or several: most of its words are plain. */
bool is_prose(const char *s);

/* The writer speaks of themselves: "I", "our". */
bool says_i(const char *line);

/* One of the sentences in the line says that something about a GPU fails. */
bool complaint_in(const char *line);

#endif
