/* SPDX-License-Identifier: Apache-2.0
 * Does a program train? Before its first backward only its code can tell: the innermost function on the stack whose
 * name says so (train…, fit; eval…, predict…), else whether the user's files on the stack call backward() at all.
 */
#ifndef CUWHY_TRAINS_H
#define CUWHY_TRAINS_H

#include <stdint.h>

struct trace;

enum trains { TRAINS_UNKNOWN, TRAINS_NO, TRAINS_YES };

enum trains stack_trains_by_name(const struct trace *t, uint32_t stack);
enum trains stack_trains(const struct trace *t, uint32_t stack);

#endif
