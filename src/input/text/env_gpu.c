/* SPDX-License-Identifier: Apache-2.0
 * GPUs that a text names: where a name begins, where it ends, how many there are, and what they can do.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "compat/compat.h"
#include "input/text/env_priv.h"
#include "base/banned.h"

static const char *find_gpu(const char *s)
{
	static const char *const names[] = {
		"GeForce ", "RTX ", "GTX ", "Tesla ", "Quadro ", "TITAN ", "A100", "A800", "A30", "A40", "A10", "H100", "H200", "H800", "H20", "GH200",
		"B100", "B200", "GB200", "B300", "GB300", "GB10", "V100", "P100", "P40", "P4", "K80", "K40", "M40", "M60", "T4", "L4", "L40", "L40S", "L20", "A2000", "A4000", "A4500", "A5000", "A6000", "RTX2", "RTX3", "RTX4", "RTX5", "GTX1", "GTX9", "DGX Spark", "Jetson", "Thor",
	};
	const char *best = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *at = strstr(s, names[i]);
		size_t n = strlen(names[i]);

		if (!at || (best && at >= best))
			continue;
		if ((at > s && (isalnum((unsigned char)at[-1]) || at[-1] == '_' || at[-1] == '/' || at[-1] == '.')) ||
		    (names[i][n - 1] != ' ' && !strstr(names[i], "TX") && (isalnum((unsigned char)at[n]) || at[n] == '_')))
			continue;
		best = at;
	}
	return best;
}

/* ---- how far a name goes ------------------------------------------------------------------------------ */

static bool has_digit(const char *s, size_t n)
{
	while (n--)
		if (isdigit((unsigned char)s[n]))
			return true;
	return false;
}

/* "3090", "A100-SXM4-80GB", "RTX4090": short, with a digit, and nothing in it that names do not have. */
static bool is_model(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '-')
			return false;
	return n <= 20 && has_digit(s, n);
}

/* "3g.20gb" */
static bool is_slice(const char *s, size_t n)
{
	return n >= 5 && isdigit((unsigned char)s[0]) && s[1] == 'g' && s[2] == '.' && isdigit((unsigned char)s[3]);
}

static bool is_number(const char *s, size_t n)
{
	return strspn(s, "0123456789") >= n;
}

/* A word that stands in names of GPUs; of numbers a name has one. */
static bool goes_on(const char *s, size_t n, bool model)
{
	if (is_number(s, n))
		return !model && is_model(s, n);
	return compat_name_word(s, n) || (!model && is_model(s, n)) || is_slice(s, n) || str_starts(s, "with Max-Q");
}

/* Length of the name that begins here; 0 when words of it stand alone ("RTX cards"). */
static size_t name_length(const char *s)
{
	static const char ends[] = " |,(;:\"'`)[]{}<>!?\t";
	bool model = false, whole = str_starts(s, "TITAN") || str_starts(s, "DGX") || str_starts(s, "Jetson") || str_starts(s, "Thor");
	size_t len = 0, at = 0;

	for (;;) {
		size_t n = strcspn(s + at, ends);

		while (n && s[at + n - 1] == '.')
			n--;
		if (!n || (at && !goes_on(s + at, n, model)))
			break;
		model |= has_digit(s + at, n);
		len = at + n;
		if (s[len] != ' ')
			break;
		at = len + 1;
	}
	return model || whole ? len : 0;
}

/* ---- a line ---------------------------------------------------------------------------------------------- */

static void read_capabilities(struct text_env *e, const char *s)
{
	int major = 0, minor = 0;
	const char *at;
	size_t n;

	if ((at = env_after(s, "cuda capability ")) != NULL) {
		if (sscanf(at, "sm_%d", &major) == 1)
			e->capability = major;
		else if (sscanf(at, "%d.%d", &major, &minor) == 2)
			e->capability = major * 10 + minor;
	}
	if ((at = env_after(s, "supports CUDA capabilities ")) != NULL) {
		n = strcspn(at, ".\n");
		str_copy(e->arch_list, n + 1 < sizeof(e->arch_list) ? n + 1 : sizeof(e->arch_list), at);
	}
	if ((at = env_after(s, "capability supported by this library is ")) != NULL && sscanf(at, "%d.%d", &major, &minor) == 2)
		e->capability_min = major * 10 + minor;
}

/* "GPU 3: NVIDIA A100", "2x RTX 4090" */
static void read_count(struct text_env *e, const char *s, const char *name)
{
	const char *gpu = strstr(s, "GPU ");

	if (gpu && gpu < name && isdigit((unsigned char)gpu[4]) && strtol(gpu + 4, NULL, 10) + 1 > e->gpus)
		e->gpus = (int)strtol(gpu + 4, NULL, 10) + 1;
	if (name - s >= 3 && (name[-2] == 'x' || name[-2] == 'X') && isdigit((unsigned char)name[-3]) && name[-3] > '0')
		e->gpus = name[-3] - '0';
}

void env_gpu(struct text_env *e, const char *s)
{
	const char *at = find_gpu(s);
	size_t n;

	read_capabilities(e, s);
	if (!at)
		return;
	if (!e->gpu[0]) {
		n = name_length(at);
		str_copy(e->gpu, n + 1 < sizeof(e->gpu) ? n + 1 : sizeof(e->gpu), at);
	}
	read_count(e, s, at);
}
