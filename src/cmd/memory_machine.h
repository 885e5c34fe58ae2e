/* SPDX-License-Identifier: Apache-2.0
 * Why no GPU of this machine could be asked.
 */
#ifndef CUWHY_MEMORY_MACHINE_H
#define CUWHY_MEMORY_MACHINE_H

struct err;
struct gpu_usage;

/* Fills `e`, and returns its code. */
int no_gpu_answer(const struct gpu_usage *u, struct err *e);

#endif
