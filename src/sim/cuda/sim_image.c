/* SPDX-License-Identifier: Apache-2.0
 * Module images: reads one (README.md has the format) and picks the code that fits the GPU. */
#include "sim/cuda/sim_image.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char image_magic[] = "cuwhy-sim-module 1\n";

struct image {
	struct sim_func *funcs;
	int targets;		/* lines seen */
	struct sim_choice choice;
};

void sim_funcs_free(struct sim_func *f)
{
	while (f) {
		struct sim_func *next = f->next;

		if (!f->real)
			free(f->name);
		f->name = NULL;
		sim_pool_drop(&sim.funcs, f);
		f = next;
	}
}

/* May code for this architecture (86, suffix 'a', 'f' or none) run as it is on the device? */
static bool sass_fits(const struct sim_model *m, int arch, char suffix)
{
	if (arch / 10 != m->major || arch % 10 > m->minor)
		return false;
	return suffix != 'a' || arch % 10 == m->minor;
}

static bool ptx_fits(const struct sim_model *m, int arch, char suffix)
{
	if (suffix)
		return sass_fits(m, arch, suffix);
	return arch <= m->major * 10 + m->minor;
}

bool sim_choice_sass(struct sim_choice *c, const struct sim_model *m, int arch, char suffix)
{
	if (!sass_fits(m, arch, suffix) || arch < c->sass || (arch == c->sass && (!suffix || c->sass_special)))
		return false;
	c->sass = arch;
	c->sass_special = suffix != '\0';
	return true;
}

bool sim_choice_ptx(struct sim_choice *c, const struct sim_model *m, int arch, char suffix, int version)
{
	if (!ptx_fits(m, arch, suffix))
		return false;
	if (version > sim.config.ptx) {
		c->ptx_too_new = version;
		return false;
	}
	if (arch <= c->ptx)
		return false;
	c->ptx = arch;
	c->ptx_version = version;
	return true;
}

int sim_choice_code(const struct sim_choice *c)
{
	const char *no_jit = getenv("CUDA_DISABLE_PTX_JIT");

	if (c->sass)
		return 0;
	if (!c->ptx)
		return c->ptx_too_new ? SIM_UNSUPPORTED_PTX_VERSION : SIM_NO_BINARY_FOR_GPU;
	return no_jit && *no_jit == '1' ? SIM_JIT_DISABLED : 0;
}

/* "target sm_86", "target compute_90 ptx 9.1" */
static int parse_target(struct image *im, const struct sim_model *m, const char *line)
{
	int arch, major = 0, minor = 0, used = 0;
	char suffix;

	im->targets++;
	if (sscanf(line, "target sm_%d%n", &arch, &used) == 1) {
		suffix = isalpha((unsigned char)line[used]) ? line[used] : '\0';
		sim_choice_sass(&im->choice, m, arch, suffix);
		return 0;
	}
	if (sscanf(line, "target compute_%d%n", &arch, &used) != 1)
		return SIM_INVALID_IMAGE;
	suffix = isalpha((unsigned char)line[used]) ? line[used++] : '\0';
	if (sscanf(line + used, " ptx %d.%d", &major, &minor) != 2)
		return SIM_INVALID_IMAGE;
	sim_choice_ptx(&im->choice, m, arch, suffix, major * 10 + minor);
	return 0;
}

static int set_override(struct sim_func *f, const char *word)
{
	const char *eq = strchr(word, '=');
	int value;

	if (!eq)
		return SIM_INVALID_IMAGE;
	if (!strncmp(word, "mangled=", 8)) {
		free(f->name);
		f->name = strdup(eq + 1);
		return f->name ? 0 : SIM_OUT_OF_MEMORY;
	}
	if (sscanf(eq + 1, "%d", &value) != 1 || value < 0)
		return SIM_INVALID_IMAGE;
	if (!strncmp(word, "regs=", 5))
		f->regs = value;
	else if (!strncmp(word, "shared=", 7))
		f->shared = value;
	else if (!strncmp(word, "bounds=", 7))
		f->bounds = value;
	else if (!strncmp(word, "max_threads=", 12))
		f->max_threads = value;
	else if (!strncmp(word, "cluster=", 8))
		f->cluster_must = value;
	else if (!strncmp(word, "any_params=", 11))
		f->any_params = value;
	else
		return SIM_INVALID_IMAGE;
	return 0;
}

struct sim_func *sim_func_new(const struct sim_kernel_row *row)
{
	struct sim_func *f = sim_pool_new(&sim.funcs);
	struct sim_head head;

	if (!f)
		return NULL;
	head = f->head;
	memset(f, 0, sizeof(*f));
	f->head = head;
	f->func = f;
	f->row = row;
	f->name = strdup(row->mangled);
	if (!f->name) {
		sim_pool_drop(&sim.funcs, f);
		return NULL;
	}
	sim_keep(f->name);
	f->regs = row->regs;
	f->shared = row->shared;
	atomic_store(&f->carveout, -1);
	f->param_count = (unsigned int)strlen(row->params);
	f->param_bytes = (unsigned int)sim_kernel_bytes(row);
	for (unsigned int i = 0; i < f->param_count; i++) {
		size_t size = 0;

		f->params[i].offset = (unsigned short)sim_kernel_layout(row, i, &size);
		f->params[i].size = (unsigned short)size;
	}
	return f;
}

/* "kernel NAME [key=value]..." */
static int parse_kernel(struct image *im, char *line)
{
	char *save = NULL, *word = strtok_r(line + 7, " \t\r", &save);
	const struct sim_kernel_row *row = word ? sim_kernel_find(word, strlen(word)) : NULL;
	struct sim_func *f = row ? sim_func_new(row) : NULL;
	int code = 0;

	if (!row)
		return SIM_INVALID_IMAGE;
	if (!f)
		return SIM_OUT_OF_MEMORY;
	f->next = im->funcs;
	im->funcs = f;
	while (!code && (word = strtok_r(NULL, " \t\r", &save)))
		code = set_override(f, word);
	atomic_store(&f->dynamic_max, SIM_SHARED_DEFAULT - f->shared);
	f->threads = sim_func_threads(f);
	atomic_store(&f->head.alive, 1);
	return code;
}

/* "assert FILE:LINE: FUNCTION: CONDITION", for the kernel on the line before */
static int parse_assert(struct image *im, const char *line)
{
	const char *function = strstr(line, ": ");

	if (!im->funcs || !function || !strstr(function + 2, ": "))
		return SIM_INVALID_IMAGE;
	snprintf(im->funcs->assertion, sizeof(im->funcs->assertion), "%s", line);
	return 0;
}

static int parse_lines(struct image *im, const struct sim_model *m, char *text)
{
	char *save = NULL;
	int code = 0;

	for (char *line = strtok_r(text, "\n", &save); line && !code;
	     line = strtok_r(NULL, "\n", &save)) {
		while (*line == ' ' || *line == '\t')
			line++;
		if (!*line || *line == '#')
			continue;
		if (!strncmp(line, "target ", 7))
			code = parse_target(im, m, line);
		else if (!strncmp(line, "kernel ", 7))
			code = parse_kernel(im, line);
		else if (!strncmp(line, "assert ", 7))
			code = parse_assert(im, line + 7);
		else
			code = SIM_INVALID_IMAGE;
	}
	return code ? code : im->targets ? 0 : SIM_INVALID_IMAGE;
}

/* R580's texts. */
static void log_refusal(int code, const struct sim_model *m)
{
	const char *what = code == SIM_INVALID_IMAGE ? "Error handling fatbinary" :
			   code == SIM_NO_BINARY_FOR_GPU ? NULL : "JIT compilation failed";

	if (what)
		sim_log("%s, to get more information when using CUDA Driver APIs use the "
			"CU_JIT_ERROR_LOG_BUFFER and CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES "
			"parameters", what);
	sim_log("No device code available for GPU ISA %d%d", m->major, m->minor);
}

static int module_parse(struct sim_module *mod, const struct sim_model *m, const char *text)
{
	struct image im = {0};
	char *copy = strdup(text);
	int code = copy ? parse_lines(&im, m, copy) : SIM_OUT_OF_MEMORY;

	free(copy);
	if (!code)
		code = sim_choice_code(&im.choice);
	if (code) {
		sim_funcs_free(im.funcs);
		return code;
	}
	mod->funcs = im.funcs;
	mod->binary_version = im.choice.sass ? im.choice.sass : m->major * 10 + m->minor;
	mod->ptx_version = im.choice.ptx ? im.choice.ptx : im.choice.sass;
	for (struct sim_func *f = im.funcs; f; f = f->next)
		f->module = mod;
	return 0;
}

int sim_module_new(struct sim_module **out, struct sim_ctx *ctx, int device, const void *image, bool kept)
{
	const struct sim_model *m = sim.devices[device].model;
	const char *text = image;
	struct sim_module *mod;
	int code = SIM_INVALID_IMAGE;

	mod = sim_pool_new(&sim.modules);
	if (!mod)
		return SIM_OUT_OF_MEMORY;
	mod->ctx = ctx;
	mod->funcs = NULL;
	mod->real = NULL;
	if (sim_real_is(image))
		code = sim_real_load(mod, m, image, kept);
	else if (!strncmp(text, image_magic, sizeof(image_magic) - 1))
		code = module_parse(mod, m, text + sizeof(image_magic) - 1);
	if (code) {
		log_refusal(code, m);
		sim_pool_drop(&sim.modules, mod);
		return code;
	}
	atomic_store(&mod->head.alive, 1);
	*out = mod;
	return 0;
}
