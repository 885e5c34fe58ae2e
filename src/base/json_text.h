/* SPDX-License-Identifier: Apache-2.0
 * Words and numbers as JSON: file names and arguments need not be UTF-8, JSON must be.
 */
#ifndef CUWHY_JSON_TEXT_H
#define CUWHY_JSON_TEXT_H

#include <stdint.h>

#include <jansson.h>

/* Bytes that are no UTF-8 become '?'. Never NULL; NULL gives JSON null. */
json_t *json_text(const char *s);

/* A number of bytes; one that JSON cannot hold, or that stands for "not known", is null. */
json_t *json_bytes(uint64_t n);

#endif
