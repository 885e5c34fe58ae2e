/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a JSON string: file names and arguments need not be UTF-8, JSON must be.
 */
#ifndef CUWHY_JSON_TEXT_H
#define CUWHY_JSON_TEXT_H

#include <jansson.h>

/* Bytes that are no UTF-8 become '?'. Never NULL; NULL gives JSON null. */
json_t *json_text(const char *s);

#endif
