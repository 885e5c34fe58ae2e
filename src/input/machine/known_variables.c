/* SPDX-License-Identifier: Apache-2.0
 * The rows of kb/variables.def, found by name or by a name that is nearly one.
 */
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "input/machine/variables_priv.h"
#include "base/banned.h"

static const struct known_variable known[] = {
#define VAR(name, reader, kind, allowed, level, when, text)	{#name, reader, VALUE_##kind, allowed, LEVEL_##level, #when, text},
#define NAME(name, reader)					{#name, reader, VALUE_TEXT, "", LEVEL_FINE, "SET", ""},
#include "kb/variables.def"
};

#define N_KNOWN	(sizeof(known) / sizeof(known[0]))

const struct known_variable *known_variable(const char *name)
{
	for (size_t i = 0; i < N_KNOWN; i++)
		if (known[i].name[0] == name[0] && strcmp(known[i].name, name) == 0)
			return &known[i];
	return NULL;
}

/* How many letters one has that the other has not: so many must be edited at least. Far cheaper than the real distance;
 * letters that share a box only make the number smaller. */
static size_t letters_apart(const char *a, const char *b)
{
	signed char count[32] = {0};
	size_t more = 0, less = 0;

	for (; *a; a++)
		count[*a & 31]++;	/* upper and lower case alike */
	for (; *b; b++)
		count[*b & 31]--;
	for (int i = 0; i < 32; i++) {
		more += count[i] > 0 ? (size_t)count[i] : 0;
		less += count[i] < 0 ? (size_t)-count[i] : 0;
	}
	return more > less ? more : less;
}

static bool is_special(const char *name)
{
	return str_starts(name, "CUDA_") || str_starts(name, "NCCL_") || str_starts(name, "PYTORCH_") || str_starts(name, "TORCH_") ||
	       str_starts(name, "NVIDIA_") || str_starts(name, "LD_LIBRARY_");
}

/* Longer names may have more slips; where the name looks like nothing of ours, one or two letters are all that counts. */
static size_t slips_allowed(size_t len, bool outside)
{
	size_t n = len / 8 + 1;

	return outside ? (len < 10 ? 0 : 2) : n > 3 ? 3 : n;
}

const char *known_nearest(const char *name, bool outside)
{
	size_t len = strlen(name), allowed, best, d;
	const char *found = NULL;

	if (len < 6 || len > 64)
		return NULL;
	allowed = slips_allowed(len, outside);
	best = allowed + 1;
	for (size_t i = 0; i < N_KNOWN; i++) {
		const char *k = known[i].name;
		size_t n = strlen(k);

		if (n + allowed < len || len + allowed < n || (outside && !is_special(k)))
			continue;
		if (strcasecmp(name, k) == 0)
			return k;
		if (letters_apart(name, k) > allowed)
			continue;
		d = str_distance(name, k);
		if (d < best) {
			best = d;
			found = k;
		}
	}
	return found;
}
