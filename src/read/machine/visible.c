/* SPDX-License-Identifier: Apache-2.0
 * CUDA_VISIBLE_DEVICES as CUDA reads it: numbers or ids in order, up to the first invalid one.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "read/machine/variables.h"

struct entry {
	char text[128];
	bool cut;			/* longer than any id */
};

static const char *take_entry(const char *s, struct entry *e)
{
	size_t n = strcspn(s, ","), len = n;

	while (len && isspace((unsigned char)*s)) {
		s++;
		len--;
		n--;
	}
	while (len && isspace((unsigned char)s[len - 1]))
		len--;
	e->cut = len >= sizeof(e->text);
	if (e->cut)
		len = sizeof(e->text) - 1;
	memcpy(e->text, s, len);
	e->text[len] = '\0';
	return s[n] ? s + n + 1 : NULL;
}

/* Like strtol: anything after the number is ignored ("1gpu" is 1). */
static enum visible_end find_number(const char *text, int n_gpus, int *found)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text)
		return strcmp(text, "NoDevFiles") == 0 ? VISIBLE_NEGATIVE : VISIBLE_NOT_A_NUMBER;
	if (n < 0)
		return VISIBLE_NEGATIVE;
	if (n >= VISIBLE_MAX || (n_gpus >= 0 && n >= n_gpus))
		return VISIBLE_NO_SUCH_GPU;
	*found = (int)n;
	return VISIBLE_END;
}

static enum visible_end visible_matched(int matches)
{
	return matches == 0 ? VISIBLE_NO_SUCH_GPU : matches > 1 ? VISIBLE_AMBIGUOUS : VISIBLE_END;
}

/* Enough digits from the beginning of an id. */
static enum visible_end find_uuid(const char *text, const struct visible_gpu *gpu, int n_gpus, int *found)
{
	int matches = 0;

	*found = -1;
	if (n_gpus < 0)
		return VISIBLE_END;
	for (int i = 0; i < n_gpus; i++) {
		if (!gpu[i].uuid)
			return VISIBLE_END;	/* not known */
		if (strncasecmp(gpu[i].uuid, text, strlen(text)) == 0) {
			matches++;
			*found = i;
		}
	}
	return visible_matched(matches);
}

static bool is_mig(const struct visible_gpu *g, const char *text)
{
	const char *slash = strchr(text, '/');

	/* the form of drivers before R470: MIG-GPU-<id>/<gpu instance>/<compute instance> */
	if (str_starts(text, "MIG-GPU-") && slash)
		return g->uuid && strncasecmp(g->uuid, text + 4, (size_t)(slash - text - 4)) == 0;
	for (size_t k = 0; g->mig && g->mig[k]; k++)
		if (strncasecmp(g->mig[k], text, strlen(text)) == 0)
			return true;
	return false;
}

static enum visible_end find_mig(const char *text, const struct visible_gpu *gpu, int n_gpus, int *found)
{
	bool known = false;
	int matches = 0;

	*found = -1;
	for (int i = 0; i < n_gpus; i++) {
		known |= gpu[i].mig != NULL;
		if (is_mig(&gpu[i], text)) {
			matches++;
			*found = i;
		}
	}
	if (n_gpus < 0 || (!known && matches == 0))
		return VISIBLE_END;	/* whether there are any is not known */
	return visible_matched(matches);
}

enum { NUMBERS, UUIDS, MIGS };

static int form_of(const char *text)
{
	return str_starts(text, "MIG-") ? MIGS : str_starts(text, "GPU-") ? UUIDS : NUMBERS;
}

static bool visible_seen_before(const struct visible *v, const struct entry *e, int found, char seen[][128])
{
	for (int i = 0; i < v->n; i++)
		if ((found >= 0 && v->gpu[i] == found) || (found < 0 && strcasecmp(seen[i], e->text) == 0))
			return true;
	return false;
}

static void visible_stop(struct visible *v, struct pool *pool, enum visible_end why, const struct entry *e)
{
	char *text;

	v->end = why;
	text = pool_strdup(pool, e->text);
	str_make_utf8(text);
	v->stopped_at = text;
	if (why == VISIBLE_TWICE)
		v->n = 0;
}

/* One entry; false when the list ends here. */
static bool visible_take(struct visible *v, struct pool *pool, const struct entry *e, int first,
			 const struct visible_gpu *gpu, int n_gpus, char seen[][128])
{
	int form = form_of(e->text), found = -1;
	enum visible_end end;

	if (form != first)
		end = form == NUMBERS && find_number(e->text, n_gpus, &found) == VISIBLE_NEGATIVE ? VISIBLE_NEGATIVE
												  : VISIBLE_MIXED;
	else if (e->cut)
		end = VISIBLE_NOT_A_NUMBER;
	else if (form == MIGS)
		end = find_mig(e->text, gpu, n_gpus, &found);
	else
		end = form == UUIDS ? find_uuid(e->text, gpu, n_gpus, &found) : find_number(e->text, n_gpus, &found);
	if (end == VISIBLE_END && form != MIGS && visible_seen_before(v, e, found, seen))
		end = VISIBLE_TWICE;
	if (end == VISIBLE_END && form == MIGS && v->n > 0)
		end = VISIBLE_MIG_SECOND;
	if (end == VISIBLE_END && v->n == VISIBLE_MAX)
		end = VISIBLE_NO_SUCH_GPU;
	if (end != VISIBLE_END) {
		visible_stop(v, pool, end, e);
		return false;
	}
	memcpy(seen[v->n], e->text, sizeof(e->text));
	v->gpu[v->n++] = found;
	return true;
}

void visible_parse(struct visible *out, struct pool *pool, const char *value, const struct visible_gpu *gpu, int n_gpus)
{
	char seen[VISIBLE_MAX][128];
	struct entry e;
	bool going = true;
	int first = -1;

	*out = (struct visible){.set = value != NULL};
	if (!value) {
		out->n = n_gpus < 0 ? -1 : n_gpus > VISIBLE_MAX ? VISIBLE_MAX : n_gpus;
		for (int i = 0; i < out->n; i++)
			out->gpu[i] = i;
		return;
	}
	if (!value[strspn(value, " \t")])
		return;		/* empty: none */
	while (value) {
		value = take_entry(value, &e);
		if (!e.text[0] && !value && first >= 0)
			break;	/* a comma at the end means nothing */
		if (out->wanted < 1000000)
			out->wanted++;
		if (first < 0)
			first = form_of(e.text);
		if (going)
			going = visible_take(out, pool, &e, first, gpu, n_gpus, seen);
	}
}

const char *visible_end_id(enum visible_end end)
{
	static const char *const id[] = {"end",	      "not-a-number", "negative", "no-such-gpu",
					 "ambiguous", "twice",	      "mixed",	  "mig-second"};

	return id[end];
}
