/* SPDX-License-Identifier: Apache-2.0
 * GPUs that a text mentions: their names, how many there are, and their compute capabilities.
 */
#include "find/words/env.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "compat/compat.h"
#include "read/text/said.h"

/* Where such a name begins, as a word of its own; NULL: nowhere. */
static const char *find_product(const char *s, enum said_list names, bool whole)
{
	const char *after;

	for (const char *at = s; (at = says_on(s, at, names, &after)) != NULL; at++)
		if ((at == s || (!isalnum((unsigned char)at[-1]) && !strchr("_/.", at[-1]))) &&
		    !(whole && (isalnum((unsigned char)*after) || *after == '_')))
			return at;
	return NULL;
}

static const char *find_gpu(const char *s)
{
	const char *line = find_product(s, SAID_gpu_line, false), *model = find_product(s, SAID_gpu_model, true);

	return !line || (model && model < line) ? model : line;
}

static bool has_digit(const char *s, size_t n)
{
	while (n--)
		if (isdigit((unsigned char)s[n]))
			return true;
	return false;
}

/* "3090", "A100-SXM4-80GB", "RTX4090": short, with a digit, and only characters that such names have. */
static bool is_gpu_model(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '-')
			return false;
	return n <= 20 && has_digit(s, n);
}

/* "3g.20gb" */
static bool is_mig_slice(const char *s, size_t n)
{
	return n >= 5 && isdigit((unsigned char)s[0]) && s[1] == 'g' && s[2] == '.' && isdigit((unsigned char)s[3]);
}

/* A word that occurs in GPU names; a name has only one number. */
static bool gpu_name_goes_on(const char *s, size_t n, bool model)
{
	if (strspn(s, "0123456789") >= n)
		return !model && is_gpu_model(s, n);
	return compat_name_word(s, n) || (!model && is_gpu_model(s, n)) || is_mig_slice(s, n) ||
	       str_starts(s, "with Max-Q");
}

/* Length of the name that begins here; 0 when only some of its words are there ("RTX cards"). */
static size_t gpu_name_length(const char *s)
{
	static const char ends[] = " |,(;:\"'`)[]{}<>!?\t";
	bool model = false, whole = says(s, SAID_gpu_whole);
	size_t len = 0, at = 0;

	for (;;) {
		size_t n = strcspn(s + at, ends);

		while (n && s[at + n - 1] == '.')
			n--;
		if (!n || (at && !gpu_name_goes_on(s + at, n, model)))
			break;
		model |= has_digit(s + at, n);
		len = at + n;
		if (s[len] != ' ')
			break;
		at = len + 1;
	}
	return model || whole ? len : 0;
}

static void read_capabilities(struct text_env *e, const char *s)
{
	int major = 0, minor = 0;
	const char *at;
	size_t n;

	for (size_t row = 0; (at = says_before(s, SAID_capability, &row)) != NULL;) {
		if (sscanf(at, "sm_%d", &major) == 1)
			e->capability = major;
		else if (sscanf(at, "%d.%d", &major, &minor) == 2)
			e->capability = major * 10 + minor;
	}
	/* "- 7.5 which supports hardware CC >=7.5,<8.0": the list of what PyTorch was built for; the dash may have gone with a logger's prefix */
	if (says(s, SAID_hardware_cc) && sscanf(s + strspn(s, "- "), "%d.%d", &major, &minor) == 2 &&
	    (!e->capability_min || major * 10 + minor < e->capability_min))
		e->capability_min = major * 10 + minor;
	if (says_at(s, SAID_arch_list, &at)) {
		n = strcspn(at, ".\n");
		str_copy(e->arch_list, n + 1 < sizeof(e->arch_list) ? n + 1 : sizeof(e->arch_list), at);
	}
	if (says_at(s, SAID_capability_min, &at) && sscanf(at, "%d.%d", &major, &minor) == 2)
		e->capability_min = major * 10 + minor;
}

/* "GPU 3: NVIDIA A100", "2x RTX 4090" */
static void read_gpu_count(struct text_env *e, const char *s, const char *name)
{
	const char *gpu = strstr(s, "GPU ");

	if (gpu && gpu < name && isdigit((unsigned char)gpu[4]) && strtol(gpu + 4, NULL, 10) + 1 > e->gpus)
		e->gpus = (int)strtol(gpu + 4, NULL, 10) + 1;
	if (name - s >= 3 && (name[-2] == 'x' || name[-2] == 'X') && isdigit((unsigned char)name[-3]) && name[-3] > '0')
		e->gpus = name[-3] - '0';
}

void env_read_gpu(struct text_env *e, const char *s)
{
	const char *at = find_gpu(s);
	size_t n;

	read_capabilities(e, s);
	if (!at)
		return;
	if (!e->gpu[0]) {
		n = gpu_name_length(at);
		str_copy(e->gpu, n + 1 < sizeof(e->gpu) ? n + 1 : sizeof(e->gpu), at);
	}
	read_gpu_count(e, s, at);
}
