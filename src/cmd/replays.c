/* SPDX-License-Identifier: Apache-2.0
 * Opens what can be played back, and asks it questions in words (see replays.h).
 */
#include "cmd/replays.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/progress.h"
#include "base/str.h"
#include "cmd/cards.h"
#include "read/recording/damage.h"
#include "find/failure/place.h"
#include "find/memory/playback.h"
#include "read/recording/recording.h"
#include "read/recording/trace_memory.h"

#define WORD_MAX    256

static void replays_add(struct replays *r, const char *part, int device, const struct buf *bytes)
{
	struct err e = {0};
	struct replayed one = {.trace = trace_open(part, &e), .device = device};

	if (one.trace)
		one.replay = replay_new(one.trace, bytes->data, bytes->len, device, &e);
	if (!one.replay) {
		trace_free(one.trace);
		if (!r->left_out.code)
			r->left_out = e;
		return;
	}
	r->list = xgrow(r->list, r->n, &r->cap, sizeof(*r->list));
	r->list[r->n++] = one;
}

static void replays_add_process(struct replays *r, const char *part)
{
	struct err e = {0};
	struct trace *t = trace_open(part, &e);
	struct buf bytes = {0};
	struct pool pool = {0};
	size_t before = r->n;
	int rc = t ? memory_events_read(&bytes, t, part, &e) : -EINVAL;

	if (rc > 0) {
		err_set(&e, -ENODATA, "it has no allocator events of PyTorch");
		err_hint(&e, "record it with this version of cuwhy, or let 'cuwhy fit' run the program without a GPU");
	}
	for (int d = 0; rc == 0 && d < CW_MAX_DEVICES; d++)
		if (trace_memory(t, d)->peak_allocated)
			replays_add(r, part, d, &bytes);
	if (rc == 0 && r->n == before && trace_is_damaged(t))	/* not "no memory was used": that may be what is damaged */
		rc = err_set(&e, -EBADMSG, "%s", damage_words(t, &pool));
	if (rc && !r->left_out.code)
		r->left_out = e;
	pool_release(&pool);
	buf_release(&bytes);
	trace_free(t);
}

int replays_open(struct replays *r, const char *path, struct err *e)
{
	struct recording rec = {0};
	int rc;

	*r = (struct replays){.n = 0};
	rc = recording_read(&rec, path, e);
	progress_begin("playing back '%s'", path);
	for (size_t i = 0; rc == 0 && i < rec.n; i++)
		if (rec.process[i].part)
			replays_add_process(r, rec.process[i].part);
	progress_end();
	recording_release(&rec);
	if (rc || r->n)
		return rc;
	if (r->left_out.code)
		*e = r->left_out;
	else
		err_set(e, -ENODATA, "no memory of a GPU was used in '%s'", path);
	return -ENODATA;
}

void replays_close(struct replays *r)
{
	for (size_t i = 0; i < r->n; i++) {
		replay_free(r->list[i].replay);
		trace_free(r->list[i].trace);
	}
	free(r->list);
	*r = (struct replays){.n = 0};
}

void what_if_on_card(struct replay_question *q, const struct replayed *r, const struct card_model *card)
{
	card_ask(q, trace_header(r->trace)->device[r->device].name, card);
}

/* The next word up to a comma; commas in brackets belong to it. False at the end. */
static bool next_word(const char **at, char word[WORD_MAX])
{
	size_t n = 0;
	int depth = 0;

	while (**at == ',' || **at == ' ')
		(*at)++;
	for (; **at && (**at != ',' || depth > 0); (*at)++) {
		depth += (**at == '[') - (**at == ']');
		if (n + 1 < WORD_MAX)
			word[n++] = **at;
	}
	word[n] = '\0';
	return n > 0;
}

/* One of PyTorch's own: "max_split_size_mb=256", "expandable_segments". */
static void setting_add(struct buf *settings, const char *key, const char *value)
{
	bool on = !*value || strcmp(value, "true") == 0;

	buf_printf(settings, "%s%s:%s", settings->len ? "," : "", key, on ? "True" : value);
}

static int word_apply(struct replay_question *q, struct buf *settings, const struct replayed *r, char *word,
		      struct err *e)
{
	char *value = word + strcspn(word, "=:");
	const struct card_model *card;

	if (*value)
		*value++ = '\0';
	if (strcmp(word, "gpu") == 0) {
		card = card_find(value, e);
		if (!card)
			return -EINVAL;
		what_if_on_card(q, r, card);
	} else if (strcmp(word, "memory") == 0) {
		if (!str_bytes(value, &q->total))
			return err_set(e, -EINVAL, "memory= takes a size like 24GiB, not '%s'", value);
	} else {
		setting_add(settings, word, value);
	}
	return 0;
}

int what_if_parse(struct replay_question *q, const struct replayed *r, const char *words, struct err *e)
{
	char word[WORD_MAX];
	struct buf settings;
	int rc = 0;

	*q = replay_same(r->replay);
	buf_init(&settings, 4096);
	while (rc == 0 && next_word(&words, word))
		rc = word_apply(q, &settings, r, word, e);
	if (rc == 0)
		rc = replay_settings(r->replay, settings.len ? settings.data : "", &q->settings, e);
	buf_release(&settings);
	if (rc && !e->hint[0])
		err_hint(e, "gpu=NAME, memory=SIZE, or an option of PYTORCH_CUDA_ALLOC_CONF such as expandable_segments");
	return rc;
}

const char *const what_if_remedies[] = {"expandable_segments:True", "max_split_size_mb:128",
					"expandable_segments:True,roundup_power2_divisions:8", NULL};

const struct per_turn *replayed_left(struct replayed *r)
{
	if (!r->left_known)
		per_turn_find(&r->left, r->replay, r->trace, r->device);
	r->left_known = true;
	return &r->left;
}

void what_if_grows(struct what_if_row *row, struct replayed *r, const char *unit, struct pool *pool)
{
	const struct per_turn *p = replayed_left(r);

	row->growth = (struct what_if_growth){.bytes = per_turn_bytes(p),
					      .unit = unit,
					      .steady = p->left.steady,
					      .more = p->left.more,
					      .graphs = p->graphs};
	if (p->left.bytes && p->line.file)
		row->growth.line =
			pool_printf(pool, "%s:%u", file_shown(p->line.file, trace_header(r->trace)->cwd), p->line.line);
}

/* It ran out of memory, and goes on to grow where it would not have. */
static void play_on(struct what_if_row *row, struct replayed *r, const struct replay_question *q, struct pool *pool)
{
	struct per_turn_end end;

	row->growth = (struct what_if_growth){.bytes = 0};
	if (!replay_facts(r->replay)->ran_out || !replayed_left(r)->proven || !r->left.left.failed)
		return;
	what_if_grows(row, r, "iteration", pool);
	row->growth.since = r->left.loop.since;
	if (!row->answer.fits || !row->growth.bytes || !r->left.loop.turn)
		return;
	per_turn_ends(&end, r->replay, q, &r->left.left);
	row->growth.fails_at = per_turn_fails_at(&r->left, &end);
	row->growth.played = end.played;
}

void what_if_answer(struct what_if_row *row, struct replayed *r, const struct replay_question *q, struct pool *pool)
{
	struct place p = {0};

	replay_ask_over_time(r->replay, q, &row->answer, row->over_time);
	row->total = q->total;
	row->room = replay_room(r->replay, q);
	row->where = NULL;
	if (!row->answer.fits && place_of_stack(r->trace, row->answer.failure.stack, &p) && p.file)
		row->where = pool_printf(pool, "%s:%u", file_shown(p.file, trace_header(r->trace)->cwd), p.line);
	play_on(row, r, q, pool);
}
