/* SPDX-License-Identifier: Apache-2.0
 * The kernel log, line by line.
 */
#ifndef CUWHY_KLOG_H
#define CUWHY_KLOG_H

#include <stdbool.h>
#include <stddef.h>

typedef void klog_line_fn(void *user, const char *line);

/* Reads all available data (/dev/kmsg, non-blocking, or a file), at most a few megabytes. false: a read failed.
 * `*lost` is set when lines were overwritten before they were read. */
bool klog_read(int fd, bool *lost, klog_line_fn *line, void *user);

/* The same for text that is already in memory. */
void klog_text(char *text, size_t len, klog_line_fn *line, void *user);

#endif
