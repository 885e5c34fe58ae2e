/* SPDX-License-Identifier: Apache-2.0
 * Programs: created from source, "compiled", and read as PTX or cubin.
 */
#include "sim/nvrtc/nvrtc.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PyTorch keeps what NVRTC compiled in ~/.cache/torch/kernels, under a name with NVRTC's version: a version that does not exist
 * keeps these modules away from programs on a real GPU, and real code away from the simulated one. */
enum { MINOR_OF_NO_RELEASE = 99 };

/* CUDA 13 dropped the GPUs before Turing. Without an option the oldest one that is not deprecated is meant. */
enum { OLDEST_ARCH = SONAME_MAJOR >= 13 ? 75 : 50, DEFAULT_ARCH = SONAME_MAJOR >= 13 ? 75 : 52 };
/* PTX of the first release of this major version: every driver of that version compiles it. */
enum { PTX_MAJOR = SONAME_MAJOR >= 13 ? 9 : 8 };

struct expression {
	struct expression *next;
	char *text;
	char lowered[RTC_NAME_MAX];
};

struct program {
	char *source;
	struct expression *expressions;
	bool compiled;
	char *ptx, *cubin;
	const char *log;
};

STANDIN(int, nvrtcVersion, (int *major, int *minor))
{
	if (!major || !minor)
		return RTC_INVALID_INPUT;
	*major = SONAME_MAJOR;
	*minor = MINOR_OF_NO_RELEASE;
	return 0;
}

STANDIN(const char *, nvrtcGetErrorString, (int code))
{
	static const char *const names[] = {
		[0] = "NVRTC_SUCCESS",
		[RTC_OUT_OF_MEMORY] = "NVRTC_ERROR_OUT_OF_MEMORY",
		[RTC_PROGRAM_CREATION_FAILURE] = "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
		[RTC_INVALID_INPUT] = "NVRTC_ERROR_INVALID_INPUT",
		[RTC_INVALID_PROGRAM] = "NVRTC_ERROR_INVALID_PROGRAM",
		[RTC_INVALID_OPTION] = "NVRTC_ERROR_INVALID_OPTION",
		[RTC_COMPILATION] = "NVRTC_ERROR_COMPILATION",
		[RTC_BUILTIN_OPERATION_FAILURE] = "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
		[RTC_NO_NAMES_AFTER_COMPILATION] = "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
		[RTC_NO_LOWERED_NAMES_BEFORE_COMPILATION] = "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
		[RTC_NAME_NOT_VALID] = "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
		[RTC_INTERNAL_ERROR] = "NVRTC_ERROR_INTERNAL_ERROR",
	};

	if (code < 0 || (size_t)code >= sizeof(names) / sizeof(names[0]))
		return "NVRTC_ERROR unknown";
	return names[code];
}

STANDIN(int, nvrtcCreateProgram, (struct program * *out, const char *source, const char *name, int headers,
				  const char *const *texts, const char *const *names))
{
	struct program *p;

	(void)name;
	if (!out || !source || headers < 0 || (headers > 0 && (!texts || !names)))
		return RTC_INVALID_INPUT;
	p = calloc(1, sizeof(*p));
	if (p && !(p->source = strdup(source))) {
		free(p);
		p = NULL;
	}
	if (!p)
		return RTC_OUT_OF_MEMORY;
	p->log = "";
	*out = p;
	return 0;
}

STANDIN(int, nvrtcDestroyProgram, (struct program * *program))
{
	struct expression *e, *next;

	if (!program || !*program)
		return RTC_INVALID_PROGRAM;
	for (e = (*program)->expressions; e; e = next) {
		next = e->next;
		free(e->text);
		free(e);
	}
	free((*program)->source);
	free((*program)->ptx);
	free((*program)->cubin);
	free(*program);
	*program = NULL;
	return 0;
}

/* The name in the module. Without a compiler, parameter types are unknown, and so is the mangled name: an expression such as
 * kernel<float> becomes kernel_float_, which is what the module calls it. */
static void lower(struct expression *e)
{
	size_t n = 0;

	for (const char *s = e->text; *s && n + 1 < sizeof(e->lowered); s++)
		if (!isspace((unsigned char)*s) && *s != '&')
			e->lowered[n++] = isalnum((unsigned char)*s) || *s == '_' ? *s : '_';
}

STANDIN(int, nvrtcAddNameExpression, (struct program * p, const char *text))
{
	struct expression *e;

	if (!p)
		return RTC_INVALID_PROGRAM;
	if (!text)
		return RTC_INVALID_INPUT;
	if (p->compiled)
		return RTC_NO_NAMES_AFTER_COMPILATION;
	e = calloc(1, sizeof(*e));
	if (e && !(e->text = strdup(text))) {
		free(e);
		e = NULL;
	}
	if (!e)
		return RTC_OUT_OF_MEMORY;
	lower(e);
	e->next = p->expressions;
	p->expressions = e;
	return 0;
}

STANDIN(int, nvrtcGetLoweredName, (struct program * p, const char *text, const char **lowered))
{
	if (!p)
		return RTC_INVALID_PROGRAM;
	if (!text || !lowered)
		return RTC_INVALID_INPUT;
	if (!p->compiled)
		return RTC_NO_LOWERED_NAMES_BEFORE_COMPILATION;
	for (const struct expression *e = p->expressions; e; e = e->next)
		if (!strcmp(e->text, text)) {
			*lowered = e->lowered;
			return 0;
		}
	return RTC_NAME_NOT_VALID;
}

struct target {
	int arch;
	char suffix;		/* a or f, as in sm_90a; 0: none */
	bool binary;
};

/* The value of --gpu-architecture or -arch: compute_86, sm_90a. False if there is no such GPU. */
static bool read_target(const char *value, struct target *t)
{
	char *end;

	t->binary = !strncmp(value, "sm_", 3);
	if (!t->binary && strncmp(value, "compute_", 8) != 0)
		return false;
	t->arch = (int)strtol(value + (t->binary ? 3 : 8), &end, 10);
	t->suffix = *end;
	return t->arch >= OLDEST_ARCH && t->arch < 1000 && (!*end || !end[1]);
}

static int read_options(struct target *t, int count, const char *const *options)
{
	static const char *const names[] = {"--gpu-architecture", "-arch"};

	for (int i = 0; i < count; i++)
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
			size_t n = strlen(names[k]);
			const char *value = NULL;

			if (strncmp(options[i], names[k], n) != 0)
				continue;
			if (options[i][n] == '=')
				value = options[i] + n + 1;
			else if (!options[i][n] && i + 1 < count)
				value = options[i + 1];
			if (value && !read_target(value, t))
				return RTC_INVALID_OPTION;
		}
	return 0;
}

static bool is_kernel_of_source(const struct program *p, const char *name)
{
	const char *at = p->source;
	struct rtc_kernel kernel;

	while (rtc_next_kernel(&at, &kernel))
		if (!strcmp(kernel.name, name))
			return true;
	return false;
}

static void write_kernels(FILE *out, const struct program *p, int *count)
{
	const char *at = p->source;
	struct rtc_kernel kernel;

	while (rtc_next_kernel(&at, &kernel)) {
		fprintf(out, "kernel nop any_params=1 mangled=%s", kernel.name);
		if (kernel.bounds)
			fprintf(out, " bounds=%lu", kernel.bounds);
		fputc('\n', out);
		++*count;
	}
	for (const struct expression *e = p->expressions; e; e = e->next)
		if (!is_kernel_of_source(p, e->lowered))
			fprintf(out, "kernel nop any_params=1 mangled=%s\n", e->lowered);
}

/* A module with the kernels of the source, or NULL. */
static char *make_module(const struct program *p, const struct target *t, bool binary, int *count)
{
	char suffix[2] = {t->suffix}, *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	*count = 0;
	if (!out)
		return NULL;
	fputs("cuwhy-sim-module 1\n", out);
	if (binary)
		fprintf(out, "target sm_%d%s\n", t->arch, suffix);
	else
		fprintf(out, "target compute_%d%s ptx %d.0\n", t->arch, suffix, PTX_MAJOR);
	write_kernels(out, p, count);
	return fclose(out) == 0 ? text : NULL;
}

STANDIN(int, nvrtcCompileProgram, (struct program * p, int count, const char *const *options))
{
	struct target target = {.arch = DEFAULT_ARCH};
	int kernels = 0, code;

	if (!p)
		return RTC_INVALID_PROGRAM;
	if (count < 0 || (count > 0 && !options))
		return RTC_INVALID_INPUT;
	if (p->compiled)
		return RTC_INVALID_PROGRAM;
	code = read_options(&target, count, options);
	if (code) {
		p->log = "nvrtc: error: invalid value for --gpu-architecture (-arch)\n";
		return code;
	}
	p->compiled = true;
	p->ptx = make_module(p, &target, false, &kernels);
	if (target.binary)
		p->cubin = make_module(p, &target, true, &kernels);
	if (!p->ptx || (target.binary && !p->cubin))
		return RTC_OUT_OF_MEMORY;
	if (kernels > 0)
		return 0;
	p->log = "cuwhy: no __global__ function was found in the source; the simulated GPU does not compile it\n";
	return RTC_COMPILATION;
}

/* Bytes include the zero at the end; a result that does not exist has none. */
static int text_bytes(const struct program *p, const char *text, size_t *bytes)
{
	if (!p)
		return RTC_INVALID_PROGRAM;
	if (!bytes)
		return RTC_INVALID_INPUT;
	*bytes = text ? strlen(text) + 1 : 0;
	return 0;
}

static int text_copy(const struct program *p, const char *text, char *to)
{
	if (!p || !text)
		return RTC_INVALID_PROGRAM;
	if (!to)
		return RTC_INVALID_INPUT;
	memcpy(to, text, strlen(text) + 1);
	return 0;
}

#define RTC_RESULT(get, size, text)                                                                          \
	STANDIN(int, size, (const struct program *p, size_t *bytes)) { return text_bytes(p, p ? p->text : NULL, bytes); } \
	STANDIN(int, get, (const struct program *p, char *to)) { return text_copy(p, p ? p->text : NULL, to); }

RTC_RESULT(nvrtcGetPTX, nvrtcGetPTXSize, ptx)
RTC_RESULT(nvrtcGetCUBIN, nvrtcGetCUBINSize, cubin)
RTC_RESULT(nvrtcGetProgramLog, nvrtcGetProgramLogSize, log)
