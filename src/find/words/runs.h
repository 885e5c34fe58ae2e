/* SPDX-License-Identifier: Apache-2.0
 * Which logs are of different runs: both fail, and their times are far apart. Numbers of two runs must not become one answer.
 */
#ifndef CUWHY_TEXT_RUNS_H
#define CUWHY_TEXT_RUNS_H

#include <stddef.h>

struct text_log;

#define RUN_ANY (-1)

/* `run` has room for every input of the log (log_files): it gets the number of the input's run, RUN_ANY where nothing tells (no times,
 * no failure). Returns how many runs there are, the earliest first; 0 or 1: nothing proves that there are several. */
size_t log_runs(const struct text_log *l, int *run);

#endif
