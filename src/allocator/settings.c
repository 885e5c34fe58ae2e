/* SPDX-License-Identifier: Apache-2.0
 * PYTORCH_CUDA_ALLOC_CONF, as a release of PyTorch understands it. */
#include "allocator/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"

#define MIB	     ((uint64_t)1 << 20)
#define LARGE_BUFFER (20 * MIB)
#define MIN_LARGE    (10 * MIB)

static const struct allocator_release releases[] = {
#define ALLOCATOR_RELEASE(major, minor, compared, rules) {major, minor, compared, rules},
#include "allocator/releases.def"
#undef ALLOCATOR_RELEASE
};

const struct allocator_release *allocator_release_find(unsigned major, unsigned minor)
{
	const struct allocator_release *found = NULL;

	for (size_t i = 0; i < sizeof(releases) / sizeof(*releases); i++)
		if (releases[i].major < major || (releases[i].major == major && releases[i].minor <= minor))
			found = &releases[i];
	return found;
}

bool allocator_settings_same(const struct allocator_settings *a, const struct allocator_settings *b)
{
	return a->max_split == b->max_split && a->non_split_rounding == b->non_split_rounding &&
	       a->large_segment == b->large_segment && memcmp(a->divisions, b->divisions, sizeof(a->divisions)) == 0 &&
	       a->collect_above == b->collect_above && a->fraction == b->fraction && a->expandable == b->expandable &&
	       strcmp(a->unmodeled, b->unmodeled) == 0;
}

void allocator_settings_init(struct allocator_settings *s)
{
	*s = (struct allocator_settings){.max_split = UINT64_MAX,
					 .non_split_rounding = LARGE_BUFFER,
					 .large_segment = LARGE_BUFFER,
					 .fraction = -1};
}

/* The text is words and the marks , : [ ] between them; spaces mean nothing. */
struct words {
	const char *rest;
	char word[64];			/* the current one; "" at the end */
};

static bool is_mark(char c)
{
	return c && strchr(",:[]", c);
}

static void words_next(struct words *w)
{
	size_t n = 0;

	while (*w->rest == ' ')
		w->rest++;
	if (is_mark(*w->rest)) {
		w->word[n++] = *w->rest++;
	} else {
		for (; *w->rest && !is_mark(*w->rest); w->rest++)
			if (*w->rest != ' ' && n + 1 < sizeof(w->word))
				w->word[n++] = *w->rest;
	}
	w->word[n] = '\0';
}

static bool words_are(const struct words *w, const char *word)
{
	return !strcmp(w->word, word);
}

static int words_mark(struct words *w, const char *mark, struct err *e)
{
	if (!words_are(w, mark))
		return err_set(e, -EINVAL, "the allocator settings have '%s' where '%s' is expected", w->word, mark);
	words_next(w);
	return 0;
}

static int words_number(struct words *w, uint64_t *number, struct err *e)
{
	if (!str_u64(w->word, number))
		return err_set(e, -EINVAL, "'%s' in the allocator settings is not a number", w->word);
	words_next(w);
	return 0;
}

static int words_real(struct words *w, double *number, struct err *e)
{
	char *end;

	*number = strtod(w->word, &end);
	if (end == w->word || *end)
		return err_set(e, -EINVAL, "'%s' in the allocator settings is not a number", w->word);
	words_next(w);
	return 0;
}

struct parsing {
	struct allocator_settings *s;
	const struct allocator_release *release;
	struct words w;
	struct err *e;
};

static int too_small(struct parsing *p, const char *option)
{
	return err_set(p->e, -EINVAL, "%s is too small", option);
}

/* Before 2.10 the smallest value that is accepted is one above the size of a large segment. */
static int read_mib(struct parsing *p, const char *option, uint64_t *bytes)
{
	uint64_t number, least = p->s->large_segment / MIB + (p->release->rules & REST_IS_AFTER ? 0 : 1);
	int code = words_number(&p->w, &number, p->e);

	if (code)
		return code;
	if (number < least)
		return too_small(p, option);
	*bytes = number > UINT64_MAX / MIB ? UINT64_MAX / MIB * MIB : number * MIB;
	return 0;
}

static int read_max_split(struct parsing *p)
{
	return read_mib(p, "max_split_size_mb", &p->s->max_split);
}

static int read_non_split(struct parsing *p)
{
	return read_mib(p, "max_non_split_rounding_mb", &p->s->non_split_rounding);
}

static int read_large_segment(struct parsing *p)
{
	uint64_t number;
	int code = words_number(&p->w, &number, p->e);

	if (code)
		return code;
	if (number <= MIN_LARGE / MIB || number > UINT64_MAX / MIB)
		return too_small(p, "large_segment_size_mb");
	p->s->large_segment = number * MIB;
	return 0;
}

static int read_collect(struct parsing *p)
{
	int code = words_real(&p->w, &p->s->collect_above, p->e);

	if (!code && !(p->s->collect_above > 0 && p->s->collect_above < 1))
		return err_set(p->e, -EINVAL, "garbage_collection_threshold must be between 0 and 1");
	return code;
}

static int read_fraction(struct parsing *p)
{
	int code = words_real(&p->w, &p->s->fraction, p->e);

	if (!code && !(p->s->fraction >= 0 && p->s->fraction <= 1))
		return err_set(p->e, -EINVAL, "per_process_memory_fraction must be between 0 and 1");
	return code;
}

static int read_expandable(struct parsing *p)
{
	bool on = words_are(&p->w, "True");

	if (!on && !words_are(&p->w, "False"))
		return err_set(p->e, -EINVAL, "expandable_segments must be True or False, not '%s'", p->w.word);
	p->s->expandable = on;
	words_next(&p->w);
	return 0;
}

static bool power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

static void fill_divisions(struct allocator_settings *s, size_t from, size_t to, uint64_t value)
{
	for (size_t i = from; i < to; i++)
		s->divisions[i] = value;
}

/* One of [256:1,512:2,>:8]: the interval that begins at that many MiB. The first one also counts for all below. */
static int read_interval(struct parsing *p, bool *first, size_t *last)
{
	bool rest = words_are(&p->w, ">");
	uint64_t start = 0, value;
	size_t i = 0;
	int code = 0;

	if (rest)
		words_next(&p->w);
	else
		code = words_number(&p->w, &start, p->e);
	if (!code)
		code = words_mark(&p->w, ":", p->e);
	if (!code)
		code = words_number(&p->w, &value, p->e);
	if (code)
		return code;
	if ((value && !power_of_two(value)) || (!rest && !power_of_two(start)))
		return err_set(p->e, -EINVAL, "roundup_power2_divisions takes powers of two");
	if (rest) {
		fill_divisions(p->s, *last + (p->release->rules & REST_IS_AFTER ? 1 : 0), ALLOCATOR_INTERVALS, value);
		return 0;
	}
	while (i < ALLOCATOR_INTERVALS - 1 && start >> (i + 1))
		i++;
	if (*first)
		fill_divisions(p->s, 0, i, value);
	*first = false;
	p->s->divisions[i] = value;
	*last = i;
	return 0;
}

static int read_divisions(struct parsing *p)
{
	bool first = true;
	size_t last = 0;
	uint64_t value;
	int code;

	if (!words_are(&p->w, "[")) {
		code = words_number(&p->w, &value, p->e);
		if (!code && !power_of_two(value))
			code = err_set(p->e, -EINVAL, "roundup_power2_divisions takes powers of two");
		if (!code)
			fill_divisions(p->s, 0, ALLOCATOR_INTERVALS, value);
		return code;
	}
	words_next(&p->w);
	while (!words_are(&p->w, "]")) {
		code = read_interval(p, &first, &last);
		if (!code && !words_are(&p->w, "]"))
			code = words_mark(&p->w, ",", p->e);
		if (code)
			return code;
	}
	words_next(&p->w);
	return 0;
}

/* A value that changes nothing here. */
static int skip_value(struct parsing *p)
{
	unsigned depth = 0;

	while (*p->w.word && (depth || !words_are(&p->w, ","))) {
		depth += words_are(&p->w, "[");
		depth -= depth && words_are(&p->w, "]");
		words_next(&p->w);
	}
	return 0;
}

static int read_backend(struct parsing *p)
{
	if (!words_are(&p->w, "native"))
		str_copy(p->s->unmodeled, sizeof(p->s->unmodeled), "backend");
	words_next(&p->w);
	return 0;
}

static int read_reuse(struct parsing *p)
{
	if (words_are(&p->w, "True"))
		str_copy(p->s->unmodeled, sizeof(p->s->unmodeled), "graph_capture_record_stream_reuse");
	words_next(&p->w);
	return 0;
}

static int read_early_oom(struct parsing *p)
{
	if (words_are(&p->w, "True"))
		str_copy(p->s->unmodeled, sizeof(p->s->unmodeled), "throw_on_cudamalloc_oom");
	words_next(&p->w);
	return 0;
}

static const struct option {
	const char *name;
	unsigned since;			/* minor number of 2.x */
	int (*read)(struct parsing *p);
} options[] = {
	{"max_split_size_mb", 0, read_max_split},
	{"max_non_split_rounding_mb", 6, read_non_split},
	{"large_segment_size_mb", 11, skip_value},	/* was read before the others */
	{"garbage_collection_threshold", 0, read_collect},
	{"roundup_power2_divisions", 0, read_divisions},
	{"expandable_segments", 0, read_expandable},
	{"per_process_memory_fraction", 10, read_fraction},
	{"backend", 0, read_backend},
	{"graph_capture_record_stream_reuse", 9, read_reuse},
	{"throw_on_cudamalloc_oom", 12, read_early_oom},
	{"release_lock_on_cudamalloc", 0, skip_value},
	{"pinned_use_cuda_host_register", 0, skip_value},
	{"pinned_num_register_threads", 0, skip_value},
	{"pinned_use_background_threads", 6, skip_value},
	{"pinned_reserve_segment_size_mb", 9, skip_value},
	{"pinned_max_round_threshold_mb", 12, skip_value},
	{"pinned_max_cached_size_mb", 12, skip_value},
	{"pinned_free_catch_all", 12, skip_value},
	/* how much address space an expandable segment reserves: when it is used up, there is another one */
	{"expandable_segments_reserve", 12, skip_value},
	{"expandable_segments_reserve_by_class", 12, skip_value},
};

static int read_option(struct parsing *p)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (words_are(&p->w, options[i].name)) {
			int code;

			if (p->release->major == 2 && p->release->minor < options[i].since)
				break;
			words_next(&p->w);
			code = words_mark(&p->w, ":", p->e);
			return code ? code : options[i].read(p);
		}
	return err_set(p->e, -EINVAL, "PyTorch %u.%u has no allocator option '%s'", p->release->major,
		       p->release->minor, p->w.word);
}

/* The size of large segments is read first, because others must not be smaller. */
static int read_large_first(struct parsing p)
{
	int code = 0;

	for (words_next(&p.w); !code && *p.w.word; words_next(&p.w))
		if (words_are(&p.w, "large_segment_size_mb")) {
			words_next(&p.w);
			code = words_mark(&p.w, ":", p.e);
			if (!code)
				code = read_large_segment(&p);
		}
	return code;
}

int allocator_settings_parse(struct allocator_settings *s, const struct allocator_release *release, const char *text,
			     struct err *e)
{
	struct parsing p = {.s = s, .release = release, .w = {.rest = text}, .e = e};
	int code = 0;

	s->max_split = UINT64_MAX;
	s->collect_above = 0;
	fill_divisions(s, 0, ALLOCATOR_INTERVALS, 0);
	if (release->rules & KNOWS_LARGE_SEGMENT) {
		code = read_large_first(p);
		s->non_split_rounding = s->large_segment;
	}
	words_next(&p.w);
	while (!code && *p.w.word) {
		code = read_option(&p);
		if (!code && *p.w.word)
			code = words_mark(&p.w, ",", e);
	}
	return code;
}
