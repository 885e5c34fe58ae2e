/* SPDX-License-Identifier: Apache-2.0
 * A GPU core dump opened as an input.
 */
#ifndef CUWHY_INPUT_DUMP_H
#define CUWHY_INPUT_DUMP_H

struct culprit;
struct dump;

struct dump_source {
	struct dump *dump;
	struct culprit *culprit;
};

#endif
