/* SPDX-License-Identifier: Apache-2.0
 * Core dump settings, from the environment, the context and the process, in this order. */
#include "sim/cuda/sim_fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* CUcoredumpSettings */
enum { ON_EXCEPTION = 1, TRIGGER_HOST, LIGHTWEIGHT, USER_TRIGGER, FILE_NAME, PIPE_NAME, FLAGS, SETTINGS };
enum { VALUE_MAX = 1024 };

struct sim_settings {
	struct {
		size_t size;			/* 0: not set */
		char value[VALUE_MAX];
	} of[SETTINGS];
};

static struct sim_settings process, environment;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct { const char *word; unsigned int bit; } flag_words[] = {
	{ "skip_nonrelocated_elf_images", 1 }, { "skip_global_memory", 2 },
	{ "skip_shared_memory", 4 }, { "skip_local_memory", 8 }, { "skip_abort", 16 },
	{ "skip_constbank_memory", 32 }, { "gzip_compress", 64 }, { "faulted_contexts_only", 128 },
};

static bool is_text(int attribute)
{
	return attribute == FILE_NAME || attribute == PIPE_NAME;
}

static size_t natural_size(int attribute)
{
	return is_text(attribute) ? 1 : attribute == FLAGS ? sizeof(int) : sizeof(bool);
}

static void settings_put(struct sim_settings *in, int attribute, const void *value, size_t size)
{
	memcpy(in->of[attribute].value, value, size);
	if (is_text(attribute))
		in->of[attribute].value[size < VALUE_MAX ? size : VALUE_MAX - 1] = '\0';
	in->of[attribute].size = size;
}

/* Where a setting comes from; NULL: it has its default value. Needs the lock. */
static const struct sim_settings *source(const struct sim_ctx *ctx, int attribute)
{
	if (environment.of[attribute].size)
		return &environment;
	if (ctx && ctx->settings && ctx->settings->of[attribute].size)
		return ctx->settings;
	return process.of[attribute].size ? &process : NULL;
}

static bool get_flag(const struct sim_ctx *ctx, int attribute, bool fallback)
{
	const struct sim_settings *in = source(ctx, attribute);

	return in ? in->of[attribute].value[0] != 0 : fallback;
}

static void env_bool(const char *name, int attribute)
{
	const char *text = getenv(name);
	bool value;

	if (!text || !*text)
		return;
	value = *text != '0';
	settings_put(&environment, attribute, &value, sizeof(value));
}

static void env_text(const char *name, int attribute)
{
	const char *text = getenv(name);

	if (text && *text && strlen(text) < VALUE_MAX)
		settings_put(&environment, attribute, text, strlen(text) + 1);
}

static void env_flags(const char *name)
{
	const char *text = getenv(name);
	unsigned int flags = 0;

	if (!text || !*text)
		return;
	while (*text) {
		size_t length = strcspn(text, ",");

		for (size_t i = 0; i < sizeof(flag_words) / sizeof(flag_words[0]); i++)
			if (strlen(flag_words[i].word) == length &&
			    !memcmp(flag_words[i].word, text, length))
				flags |= flag_words[i].bit;
		text += length + (text[length] == ',');
	}
	settings_put(&environment, FLAGS, &flags, sizeof(flags));
}

/* The pipe is created as soon as it is requested and has a name. */
static int trigger_update(void)
{
	const struct sim_settings *in = source(NULL, PIPE_NAME);

	if (!get_flag(NULL, USER_TRIGGER, false))
		return 0;
	return sim_trigger_start(in ? in->of[PIPE_NAME].value : "corepipe.cuda.%h.%p");
}

void sim_dump_env(void)
{
	pthread_mutex_lock(&lock);
	env_bool("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", ON_EXCEPTION);
	env_bool("CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION", TRIGGER_HOST);
	env_bool("CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", LIGHTWEIGHT);
	env_bool("CUDA_ENABLE_USER_TRIGGERED_COREDUMP", USER_TRIGGER);
	env_text("CUDA_COREDUMP_FILE", FILE_NAME);
	env_text("CUDA_COREDUMP_PIPE", PIPE_NAME);
	env_flags("CUDA_COREDUMP_GENERATION_FLAGS");
	trigger_update();
	pthread_mutex_unlock(&lock);
}

/* %p process, %h host, %t seconds since 1970 */
void sim_dump_name(char *out, size_t size, const char *pattern)
{
	char host[64] = "";
	size_t used = 0;

	gethostname(host, sizeof(host) - 1);
	for (; *pattern && used + 1 < size; pattern++) {
		char next = *pattern == '%' ? pattern[1] : '\0';
		int wrote = 1;

		if (next == 'p')
			wrote = snprintf(out + used, size - used, "%d", (int)getpid());
		else if (next == 'h')
			wrote = snprintf(out + used, size - used, "%s", host);
		else if (next == 't')
			wrote = snprintf(out + used, size - used, "%lld", (long long)time(NULL));
		else
			out[used] = *pattern;
		pattern += next && strchr("pht%", next);
		used += (size_t)wrote;
	}
	out[used < size ? used : size - 1] = '\0';
}

void sim_dump_plan(struct sim_ctx *ctx, struct sim_dump_plan *plan)
{
	const struct sim_settings *in;

	memset(plan, 0, sizeof(*plan));
	pthread_mutex_lock(&lock);
	plan->enabled = get_flag(ctx, ON_EXCEPTION, false);
	in = source(ctx, FLAGS);
	if (in)
		memcpy(&plan->flags, in->of[FLAGS].value, sizeof(plan->flags));
	if (get_flag(ctx, LIGHTWEIGHT, false))
		plan->flags |= SIM_DUMP_LIGHTWEIGHT;
	plan->abort = get_flag(ctx, TRIGGER_HOST, true) && !(plan->flags & SIM_DUMP_SKIP_ABORT);
	in = source(ctx, FILE_NAME);
	sim_dump_name(plan->path, sizeof(plan->path),
		      in ? in->of[FILE_NAME].value : "core.cuda.%h.%p");
	pthread_mutex_unlock(&lock);
}

static int setting_get(struct sim_ctx *ctx, int attribute, void *value, size_t *size)
{
	char standard[sizeof(int)] = {attribute == TRIGGER_HOST};
	const struct sim_settings *in;
	size_t have;
	int code = 0;

	if (attribute < 1 || attribute >= SETTINGS || !size)
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	in = source(ctx, attribute);
	have = in ? in->of[attribute].size : natural_size(attribute);
	if (value && *size < have)
		code = SIM_INVALID_VALUE;
	else if (value)
		memcpy(value, in ? in->of[attribute].value : standard, have);
	if (!code)
		*size = have;
	pthread_mutex_unlock(&lock);
	return code;
}

/* The user's environment always wins; an existing pipe cannot be renamed. */
static int setting_set(struct sim_settings *in, int attribute, const void *value,
		       const size_t *size)
{
	if (attribute < 1 || attribute >= SETTINGS || !value || !size || !*size ||
	    *size > VALUE_MAX || (!is_text(attribute) && *size < natural_size(attribute)))
		return SIM_INVALID_VALUE;
	if (attribute == FLAGS && sim.config.driver < 12050)
		return SIM_INVALID_VALUE;
	if (environment.of[attribute].size)
		return SIM_NOT_PERMITTED;
	if (in != &process && (attribute == USER_TRIGGER || attribute == PIPE_NAME))
		return SIM_NOT_PERMITTED;
	if (attribute == PIPE_NAME && get_flag(NULL, USER_TRIGGER, false))
		return SIM_NOT_PERMITTED;
	settings_put(in, attribute, value, is_text(attribute) ? *size : natural_size(attribute));
	return attribute == USER_TRIGGER ? trigger_update() : 0;
}

int sim_cuCoredumpGetAttribute(int attribute, void *value, size_t *size)
{
	return setting_get(sim_ctx_current(), attribute, value, size);
}

int sim_cuCoredumpSetAttribute(int attribute, void *value, size_t *size)
{
	struct sim_ctx *ctx = sim_ctx_current();
	int code = SIM_OUT_OF_MEMORY;

	pthread_mutex_lock(&lock);
	if (!ctx->settings) {
		ctx->settings = calloc(1, sizeof(*ctx->settings));
		sim_keep(ctx->settings);
	}
	if (ctx->settings)
		code = setting_set(ctx->settings, attribute, value, size);
	pthread_mutex_unlock(&lock);
	return code;
}

int sim_cuCoredumpGetAttributeGlobal(int attribute, void *value, size_t *size)
{
	return setting_get(NULL, attribute, value, size);
}

int sim_cuCoredumpSetAttributeGlobal(int attribute, void *value, size_t *size)
{
	int code;

	pthread_mutex_lock(&lock);
	code = setting_set(&process, attribute, value, size);
	pthread_mutex_unlock(&lock);
	return code;
}
