/* SPDX-License-Identifier: Apache-2.0
 * Reads a pickle of plain data: numbers, strings, lists, dictionaries, tuples. Nothing is ever executed, and an opcode
 * that could is rejected, with its name and place.
 */
#ifndef CUWHY_PICKLE_H
#define CUWHY_PICKLE_H

struct snap_build;
struct snap_input;
struct err;

int pickle_read(struct snap_input *in, struct snap_build *b, struct err *e);

#endif
