/* SPDX-License-Identifier: Apache-2.0
 * Between the files that write a Chrome trace.
 */
#ifndef CUWHY_CHROMETRACE_PRIV_H
#define CUWHY_CHROMETRACE_PRIV_H

#include <stdint.h>

#include <jansson.h>

struct cw_call;
struct cw_launch;
struct trace;

json_t *chrome_hex(uint64_t n);
json_t *chrome_place(const struct trace *t, const char *file, uint32_t line, const char *function);

/* Each adds what is known, and nothing otherwise. */
void chrome_add_line(struct trace *t, json_t *args, const char *key, uint32_t stack);
void chrome_add_stack(struct trace *t, json_t *args, uint32_t stack);
void chrome_add_parameters(struct trace *t, json_t *args, const struct cw_launch *l);
void chrome_add_result(json_t *args, uint32_t code);
void chrome_add_arguments(json_t *args, const struct cw_call *c);

#endif
