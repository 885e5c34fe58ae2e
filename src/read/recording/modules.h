/* SPDX-License-Identifier: Apache-2.0
 * The modules of the program's models, as a recording has them: whose memory a site is, and what its author calls the module.
 */
#ifndef CUWHY_MODULES_H
#define CUWHY_MODULES_H

#include "base/pool.h"
#include "read/recording/trace.h"

struct module_path {
	const char *path;	/* from the outermost module: "transformer.h.7.mlp"; "" = that itself */
	const char *class_name;
	const char *root;	/* the class of the outermost module */
	uint32_t root_number;	/* tells outermost modules apart */
};

/* The module of a site, 0 = none or not known. Below `trace_modules()`. */
uint32_t trace_site_module(const struct trace *t, size_t site);
size_t trace_modules(const struct trace *t);

/* False: there is no such module, or its memory may be another one's, too. Wrappers that the program's author does not see
 * (torch.compile, FSDP, DDP, checkpointing) are left out of the path. */
bool trace_module_path(const struct trace *t, uint32_t module, struct module_path *to, struct pool *pool);

#endif
