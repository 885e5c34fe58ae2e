/* SPDX-License-Identifier: Apache-2.0
 * Debug lines for cuwhy's developers: silent unless CUWHY_DEBUG names the area.
 *
 * CUWHY_DEBUG=server:2,trace:1 or CUWHY_DEBUG=1 (everything at level 1).
 */
#ifndef CUWHY_LOG_H
#define CUWHY_LOG_H

#include <stdbool.h>

bool log_on(const char *area, int level);
void log_line(const char *area, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
