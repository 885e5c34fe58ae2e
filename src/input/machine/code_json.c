/* SPDX-License-Identifier: Apache-2.0
 * GPU code of a library in a bundle (see code_json.h).
 */
#include "input/machine/code_json.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/banned.h"

#define SETS_MAX	4096
#define TARGETS_MAX	512

static const char *const prefixes[] = {[FATBIN_SASS] = "sm_", [FATBIN_PTX] = "compute_", [FATBIN_LTO] = "lto_"};
#define N_PREFIXES (sizeof(prefixes) / sizeof(prefixes[0]))

/* --- there ------------------------------------------------------------------------------------ */

static json_t *words_of(const struct fatbin *f, const struct fatbin_set *s)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	json_t *j;

	if (!out)
		return json_string("");
	for (size_t i = 0; i < s->n; i++) {
		const struct fatbin_target *t = &f->target[s->target[i]];

		if (t->kind >= N_PREFIXES)
			continue;
		fprintf(out, "%s%s%d", ftell(out) ? " " : "", prefixes[t->kind], t->arch);
		if (t->suffix)
			fputc(t->suffix, out);
		if (t->kind == FATBIN_PTX && t->ptx)
			fprintf(out, "@%d.%d", t->ptx / 10, t->ptx % 10);
	}
	fclose(out);
	j = json_string(text);
	free(text);
	return j;
}

json_t *code_sets_to_json(const struct fatbin *f)
{
	json_t *list = json_array();

	for (size_t i = 0; i < f->n_sets; i++) {
		json_t *o = json_pack("{s:I, s:o}", "count", (json_int_t)f->set[i].count, "targets", words_of(f, &f->set[i]));

		if (f->set[i].linked)
			json_object_set_new(o, "linked", json_true());
		json_array_append_new(list, o);
	}
	return list;
}

/* --- and back --------------------------------------------------------------------------------- */

static bool read_target(const char *word, size_t len, struct fatbin_target *t, int ptx)
{
	char text[32], *end;
	size_t k = 0;

	if (len >= sizeof(text))
		return false;
	memcpy(text, word, len);
	text[len] = '\0';
	while (k < N_PREFIXES && !str_starts(text, prefixes[k]))
		k++;
	if (k == N_PREFIXES || !isdigit((unsigned char)text[strlen(prefixes[k])]))
		return false;
	*t = (struct fatbin_target){.kind = (enum fatbin_kind)k};
	t->arch = (int)strtol(text + strlen(prefixes[k]), &end, 10);
	if (*end == 'a' || *end == 'f')
		t->suffix = *end++;
	if (k == FATBIN_PTX)
		t->ptx = ptx;
	if (k == FATBIN_PTX && *end == '@') {
		t->ptx = (int)strtol(end + 1, &end, 10) * 10;
		if (*end == '.')
			t->ptx += (int)strtol(end + 1, &end, 10);
	}
	return *end == '\0' && t->arch >= 10 && t->arch < 1000;
}

/* The place of a target in the library's list, which it joins when it is new. */
static int place_of(struct fatbin *f, const struct fatbin_target *t)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->target[i].kind == t->kind && f->target[i].arch == t->arch && f->target[i].suffix == t->suffix &&
		    f->target[i].ptx == t->ptx)
			return (int)i;
	if (f->n == TARGETS_MAX)
		return -1;
	f->target[f->n] = *t;
	return (int)f->n++;
}

static int add_set(struct fatbin *f, struct pool *pool, const char *words, uint32_t count, bool linked, int ptx, struct err *e)
{
	struct fatbin_set *s = &f->set[f->n_sets];
	uint16_t *places = pool_alloc(pool, (strlen(words) / 2 + 1) * sizeof(*places));
	struct fatbin_target t;
	int at;

	*s = (struct fatbin_set){.count = count, .linked = linked, .target = places};
	for (words += strspn(words, " "); *words; words += strspn(words, " ")) {
		size_t len = strcspn(words, " ");

		at = read_target(words, len, &t, ptx) ? place_of(f, &t) : -1;
		if (at < 0)
			return err_set(e, -EINVAL, "'%.*s' in the bundle is no target of GPU code, such as sm_90 or compute_90@8.7",
				       (int)(len < 40 ? len : 40), words);
		places[s->n++] = (uint16_t)at;
		s->general |= !t.suffix && t.kind != FATBIN_LTO;
		words += len;
	}
	for (size_t i = 0; i < s->n; i++) {
		f->target[places[i]].in += count;
		f->target[places[i]].in_general += s->general ? count : 0;
	}
	f->binaries += count;
	f->general += s->general ? count : 0;
	f->n_sets++;
	return 0;
}

struct fatbin *code_from_json(struct pool *pool, const json_t *sets, const char *words, int ptx, struct err *e)
{
	size_t n = json_array_size(sets);
	struct fatbin *f = pool_alloc(pool, sizeof(*f));

	if (n > SETS_MAX) {
		err_set(e, -EINVAL, "the bundle lists more than %d sets of GPU code for a library", SETS_MAX);
		return NULL;
	}
	f->target = pool_alloc(pool, TARGETS_MAX * sizeof(*f->target));
	f->set = pool_alloc(pool, (n + 1) * sizeof(*f->set));
	if (words && add_set(f, pool, words, 1, false, ptx, e))
		return NULL;
	for (size_t i = 0; !words && i < n; i++) {
		const json_t *o = json_array_get(sets, i);
		const char *targets = json_string_value(json_object_get(o, "targets"));
		json_int_t count = json_integer_value(json_object_get(o, "count"));

		if (!targets || count < 0 || count > 1000000) {
			err_set(e, -EINVAL, "a set of GPU code in the bundle should have \"targets\" (a text) and \"count\"");
			return NULL;
		}
		if (add_set(f, pool, targets, count ? (uint32_t)count : 1, json_is_true(json_object_get(o, "linked")), ptx, e))
			return NULL;
	}
	return f;
}
