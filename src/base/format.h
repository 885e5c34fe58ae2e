/* SPDX-License-Identifier: Apache-2.0
 * Numbers for people: "4.0 TiB", "512 bytes"; "70,000". Into `buf`, which is returned.
 */
#ifndef CUWHY_FORMAT_TEXT_H
#define CUWHY_FORMAT_TEXT_H

#include <stddef.h>

char *format_bytes(char *buf, size_t size, double bytes);
char *format_thousands(char *buf, size_t size, double number);

#endif
