/* SPDX-License-Identifier: Apache-2.0
 * Does an extension fit this torch: are all torch functions that it calls there? (internal to pyenv)
 */
#ifndef CUWHY_EXTENSION_TORCH_H
#define CUWHY_EXTENSION_TORCH_H

#include "formats/elf_file.h"
#include "input/machine/pyenv/pyenv_priv.h"

#define TORCH_LIBRARIES_MAX 32

struct torch_symbols {
	struct elf_file library[TORCH_LIBRARIES_MAX];
	const char *name[TORCH_LIBRARIES_MAX];
	int n;
	bool whole;		/* the libraries that must be there are */
};

void torch_symbols_open(struct torch_symbols *t, struct env_work *w);
void torch_symbols_check(struct torch_symbols *t, struct env_work *w, const struct elf_file *f,
			 struct py_extension *e);
void torch_symbols_close(struct torch_symbols *t);

#endif
