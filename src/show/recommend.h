/* SPDX-License-Identifier: Apache-2.0
 * Which PyTorch to install, and why not the others: for this machine, or for one that is only described.
 */
#ifndef CUWHY_WRITE_RECOMMEND_H
#define CUWHY_WRITE_RECOMMEND_H

#include <stdio.h>

#include <jansson.h>

#include "compat/compat.h"

/* The answers of compat_recommend. */
bool wheel_fits(const struct compat_choice *c);
void recommend_print(FILE *out, const struct compat_choice *list, size_t n, bool windows);
json_t *recommend_json(const struct compat_choice *list, size_t n, bool windows);

/* A machine that nobody is at. */
enum described_os { DESCRIBED_LINUX, DESCRIBED_WINDOWS, DESCRIBED_WSL };

struct described {
	struct compat_ask ask;
	const char *gpus;		/* in words: "GeForce RTX 5090" */
	const char *driver;		/* as typed; NULL = none is installed yet */
	enum described_os os;
	bool jetson;			/* its driver comes with its system */
};

/* True if a wheel fits, and the driver is one for these GPUs. */
bool described_print(FILE *out, const struct described *d);
bool described_json(FILE *out, const struct described *d);

#endif
