/* SPDX-License-Identifier: Apache-2.0
 * The kernels and variables of one module of GPU code: what both readers share (see gpu_code.h).
 */
#include "formats/gpu_code.h"

#include <stdlib.h>
#include <string.h>

static int kernel_order(const void *a, const void *b)
{
	return strcmp(((const struct gpu_kernel *)a)->name, ((const struct gpu_kernel *)b)->name);
}

static int variable_order(const void *a, const void *b)
{
	return strcmp(((const struct gpu_variable *)a)->name, ((const struct gpu_variable *)b)->name);
}

void gpu_code_sort(struct gpu_code *c)
{
	xsort(c->kernel, c->kernels, sizeof(*c->kernel), kernel_order);
	xsort(c->variable, c->variables, sizeof(*c->variable), variable_order);
}

const struct gpu_kernel *gpu_code_kernel(const struct gpu_code *c, const char *name)
{
	struct gpu_kernel key = {.name = name};

	return c->kernels ? bsearch(&key, c->kernel, c->kernels, sizeof(key), kernel_order) : NULL;
}

const struct gpu_variable *gpu_code_variable(const struct gpu_code *c, const char *name)
{
	struct gpu_variable key = {.name = name};

	return c->variables ? bsearch(&key, c->variable, c->variables, sizeof(key), variable_order) : NULL;
}

void gpu_code_release(struct gpu_code *c)
{
	free(c->kernel);
	free(c->variable);
	free(c->param);
	free(c->names);
	free(c->init);
	*c = (struct gpu_code){0};
}
