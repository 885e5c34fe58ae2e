/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy fit`: on which cards a program fits, what to change where it does not, and the largest batch.
 *
 * One dry run on a simulated card without a limit, played back on every card that was asked for. Where that is not sure and
 * close, a dry run on that very card decides.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/progress.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "find/failure/place.h"
#include "find/memory/per_turn.h"
#include "fit/fit.h"
#include "fit/fit_remedies.h"
#include "read/recording/trace.h"
#include "run/run_writes.h"
#include "read/recording/recording.h"

#define BASE_CARD "h200"	/* the one whose figures were measured */
#define CARDS_MAX 64
#define CLOSE	  20		/* one part in so many of a card: there, a doubt is worth a dry run */

static struct {
	bool json, help, no_remedies;
	const char *gpu, *steps, *vary, *sizes, *writes, *keep_writes;
} given;

static const struct opt_usage usage = {
	"fit", "[options] -- PROGRAM [argument ...] | RECORDING ...",
	"Says on which GPUs a program fits, and what to change where it does not. The program runs once, unchanged, on a\n"
	"simulated GPU without a limit (no GPU is needed); its allocations are then played back on each card.\n"
	"Or does the same with recordings of 'cuwhy run'. From two or more recordings of different sizes (batch, length),\n"
	"--sizes finds the largest size that fits.",
	.notes = "cuwhy ends a training when its memory has settled (after 12 optimizer steps or more, when it has not risen for three\n"
		"times the longest wait between two rises), or still rises after 50 steps and 10 s. Any other program runs to its end.\n"
		"What would come after that, a longer batch or an evaluation, is not seen: --steps all runs to the end.\n"
		"Where a program does not fit, it runs again, once for each change that applies to it, made while it runs: activation\n"
		"checkpointing of repeated blocks, bfloat16 autocast, foreach=False for optimizers, no_grad where no backward follows;\n"
		"several at once, if none is enough. The files of the program stay as they are.\n"
		"--vary puts each value in place of '{}' in the program's words, or of the value of --NAME, or appends\n"
		 "'--NAME VALUE', and runs the program for as few values as it takes to find the largest that fits.\n"
		"--sizes says of what size each recording is. What every line asked for is a curve over the sizes: a line through\n"
		 "two of them; three and more show whether that holds, or are a parabola.\n"
		"FITS is yes or no where the answer is exact; so far, if the program was ended before its end; for now, if every\n"
		"step adds to its memory; else likely or unlikely, and why is said below the table.\n",
	.exits = "The exit status is 0 when it fits on all GPUs asked for, 1 when it does not or its memory has not settled, 2 when\n"
		 "cuwhy cannot tell.\n",
	.examples = "  cuwhy fit -- python3 train.py                      on every GPU of the table\n"
		    "  cuwhy fit --gpu rtx4090,a100-40gb -- python3 train.py --batch-size 32\n"
		    "  cuwhy fit --gpu rtx4090 --vary batch-size=4..64 -- python3 train.py\n"
		"  cuwhy fit out/                                     a recording: the newest allocations, or a memory trace\n"
		"  cuwhy fit --gpu rtx4090,40GiB --sizes 8,16 out8/ out16/    the largest size, from two recordings\n",
};

static const struct opt options[] = {
	{"gpu", 0, "NAME,...", "these GPUs (all; NAME*8: eight of them, for torchrun), or amounts of memory (24GiB)",
	 NULL, &given.gpu},
	{"steps", 0, "N", "end a training after N optimizer steps; all: run to its end", NULL, &given.steps},
	{"vary", 0, "NAME=A..B", "find the largest value of this option of the program that fits", NULL, &given.vary},
	{"sizes", 0, "A,B,...", "the recordings are of these sizes: find the largest that fits", NULL, &given.sizes},
	{"no-remedies", 0, NULL, "do not run it again, changed, where it does not fit", &given.no_remedies, NULL},
	{"writes", 0, "HOW", "of the dry runs: discard (default), or real: they change files", NULL, &given.writes},
	{"keep-writes", 0, "DIR", "put what they write into DIR/1, DIR/2, ... instead of discarding it", NULL,
	 &given.keep_writes},
	{"json", 0, NULL, "print one JSON object", &given.json, NULL},
	{"help", 'h', NULL, "print this", &given.help, NULL},
	{0},
};

static const struct opt_words words[] = {
#define SIM_MODEL(id, ...) " " #id
	{"gpu", "all"
#include "sim/cuda/sim_models.def"
	},
#undef SIM_MODEL
	{"writes", "discard real"},
	{0},
};

const struct opt_table fit_table = {&usage, options, words, OPERAND_PROGRAM};

struct fit {
	const struct card_model *card[CARDS_MAX];
	size_t n_cards;
	const struct card_model *base;	/* of the dry runs */
	struct fit_runs runs;
	char **program;
	struct pool pool;
};

/* "24GiB": the card of the recording or of the dry run, with that much memory. NULL: it is no such word ("4090" is a name). */
static const struct card_model *card_of_bytes(struct fit *f, const char *word)
{
	struct card_model *card;
	uint64_t bytes;

	if (str_u64(word, &bytes) || !str_bytes(word, &bytes))
		return NULL;
	card = pool_alloc(&f->pool, sizeof(*card));
	*card = (struct card_model){.id = word, .memory = bytes};
	return card;
}

static int card_add(struct fit *f, char *word, struct err *e)
{
	char *times = strchr(word, '*');
	const struct card_model *card;
	uint64_t n;

	if (times) {
		*times = '\0';
		if (!str_u64(times + 1, &n) || n < 1 || n > 16)
			return err_set(e, -EINVAL, "a run has 1 to 16 GPUs, not '%s'", times + 1);
		f->runs.devices = n > f->runs.devices ? (unsigned)n : f->runs.devices;
	}
	card = card_of_bytes(f, word);
	if (!card)
		card = card_find(str_starts(word, "sim:") ? word + 4 : word, e);
	if (card && f->n_cards < CARDS_MAX)
		f->card[f->n_cards++] = card;
	return card ? 0 : -EINVAL;
}

static int cards_choose(struct fit *f, struct err *e)
{
	const struct card_model *all;
	char *text = pool_strdup(&f->pool, given.gpu ? given.gpu : "all"), *rest = NULL, *word;
	int rc = 0;

	if (strcmp(text, "all") == 0) {
		f->n_cards = cards_all(&all);
		for (size_t i = 0; i < f->n_cards; i++)
			f->card[i] = &all[i];
		f->base = card_find(BASE_CARD, e);
		return 0;
	}
	for (word = strtok_r(text, ", ", &rest); rc == 0 && word; word = strtok_r(NULL, ", ", &rest))
		rc = card_add(f, word, e);
	if (rc == 0 && !f->n_cards)
		rc = err_set(e, -EINVAL, "--gpu takes the name of a GPU");
	f->base = f->n_cards && f->card[0]->name ? f->card[0] : card_find(BASE_CARD, e);
	return rc;
}

/* Of several GPUs, that on which it does not fit, else the fullest. */
static bool is_worse(const struct replay_answer *a, const struct replay_answer *b)
{
	return a->fits != b->fits ? !a->fits : a->spare < b->spare;
}

static void answer_worst(struct what_if_row *row, const struct replays *all, const struct card_model *card,
			 const char *settings, struct pool *pool)
{
	struct what_if_row one = *row;

	for (size_t i = 0; i < all->n; i++) {
		struct replay_question q = replay_same(all->list[i].replay);

		if (card)
			what_if_on_card(&q, &all->list[i], card);
		if (*settings && replay_settings(all->list[i].replay, settings, &q.settings, NULL))
			continue;
		what_if_answer(&one, &all->list[i], &q, pool);
		if (i == 0 || is_worse(&one.answer, &row->answer))
			*row = one;
	}
}

/* What does not help is not mentioned. */
static void find_remedy(struct what_if_row *row, const struct replays *all, const struct card_model *card,
			struct pool *pool)
{
	for (size_t i = 0; !row->answer.fits && !row->change && what_if_remedies[i]; i++) {
		struct what_if_row with = *row;

		answer_worst(&with, all, card, what_if_remedies[i], pool);
		if (with.answer.fits && !(with.answer.doubts & 1u << REPLAY_CARD))
			row->change = pool_printf(pool, "PYTORCH_CUDA_ALLOC_CONF=%s", what_if_remedies[i]);
	}
}

/* With how much of the batch it does, on each of its GPUs. */
static void find_smaller(struct what_if_row *row, const struct replays *all, const struct card_model *card)
{
	for (size_t i = 0; i < all->n && !row->answer.fits; i++) {
		struct replay_question q = replay_same(all->list[i].replay);
		struct smaller one;

		what_if_on_card(&q, &all->list[i], card);
		smaller_find(&one, all->list[i].replay, &q);
		if (i == 0 || !one.known ||
		    (row->smaller.known && smaller_percent(&one) < smaller_percent(&row->smaller)))
			row->smaller = one;
	}
}

/* On the card of the recording. */
static uint64_t bytes_needed(const struct replays *all)
{
	uint64_t most = 0;

	for (size_t i = 0; i < all->n; i++) {
		const struct replay_facts *facts = replay_facts(all->list[i].replay);

		if (facts->peak_reserved + facts->outside > most)
			most = facts->peak_reserved + facts->outside;
	}
	return most;
}

static int run_open(struct replays *all, const struct fit_run *run, struct err *e)
{
	int rc = replays_open(all, run->folder, e);

	if (rc && !all->left_out.code)
		err_set(e, rc, "the program used no memory of a GPU in the dry run");
	return rc;
}

/* Not sure, and so near the limit that it matters. */
static bool is_close(const struct what_if_row *row, uint64_t needed)
{
	const struct replay_answer *a = &row->answer;
	uint64_t margin = a->doubts & 1u << REPLAY_FALLBACK ? row->total : row->total / CLOSE;

	if (!a->doubts || a->doubts & 1u << REPLAY_CARD)
		return a->doubts;
	return a->fits ? a->spare < margin : needed < row->total + margin;
}

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
	va_list args;

	if (given.json)
		return;
	va_start(args, fmt);
	fputs("cuwhy: ", stderr);
	vfprintf(stderr, fmt, args);
	va_end(args);
}

/* A dry run on that very card. `end`: how it ended, or NULL. */
static int decide(struct fit *f, struct what_if_row *row, const struct card_model *card, char *const *program,
		  const char *why, struct fit_run *end, struct err *e)
{
	struct replays all;
	const struct card_model *model = card->name ? card : f->base;
	char *memory = card->name ? NULL : xasprintf("%" PRIu64, card->memory);	/* "24GiB" is not for the simulated card */
	struct fit_run run;
	int rc;

	say("%s: a dry run on a simulated %s%s%s decides\n", why, model->name, card->name ? "" : " with ",
	    card->name ? "" : card->id);
	rc = fit_run(&f->runs, &run, model, memory, program, e);
	free(memory);
	if (rc == 0 && run_open(&all, &run, &(struct err){0}) == 0) {
		answer_worst(row, &all, NULL, "", &f->pool);
		replays_close(&all);
	}
	if (rc == 0) {
		row->answer.fits = run.fits;
		row->answer.doubts = row->answer.figures = 0;
		row->total = card->memory;
	}
	if (end)
		*end = (struct fit_run){.fits = run.fits, .stopped = run.stopped, .settled = run.settled};
	fit_run_release(&run);
	return rc;
}

/* Played back; decided by a dry run where `program` can be run again and it is close. */
static int fits_on(struct fit *f, struct what_if_row *row, const struct replays *all, const struct card_model *card,
		   char *const *program, struct err *e)
{
	*row = (struct what_if_row){.words = card->id};
	answer_worst(row, all, card, "", &f->pool);
	if (program && is_close(row, bytes_needed(all)))
		return decide(f, row, card, program, "close", NULL, e);
	return 0;
}

/* Optimizer steps that ended in the last so many requests. One if that is not known. */
static uint64_t steps_in(const struct fit_run *run, uint64_t requests)
{
	uint64_t steps = 0, last = run->n_asked ? run->asked[run->n_asked - 1] : 0;

	for (size_t i = run->n_asked; i > 0 && last - run->asked[i - 1] < requests; i--)
		steps++;
	return steps ? steps : 1;
}

/* Of its GPUs, the first that runs out. */
static void find_growth(struct what_if_row *row, const struct replays *all, const struct card_model *card,
			const struct fit_run *run, struct pool *pool)
{
	for (size_t i = 0; i < all->n && !run->settled; i++) {
		struct replayed *r = &all->list[i];
		struct replay_question q = replay_same(r->replay);
		const struct turns_left *left = &replayed_left(r)->left;
		struct what_if_row one = *row;
		struct per_turn_end end;
		uint64_t steps = steps_in(run, left->requests);	/* a turn of the loop may have several */

		if (!left->bytes)
			continue;
		what_if_grows(&one, r, "step", pool);
		one.growth.bytes = left->bytes / steps;
		one.growth.more = steps == 1 ? left->more : 0;
		if (row->answer.fits) {
			what_if_on_card(&q, r, card);
			per_turn_ends(&end, r->replay, &q, left);
			one.growth.fails_at =
				run->stopped + end.turns * steps + end.requests * steps / left->requests + 1;
			one.growth.played = end.played;
		}
		if (!row->growth.bytes || one.growth.fails_at < row->growth.fails_at)
			row->growth = one.growth;
	}
}

static int status_of(const struct what_if_row *row, size_t n)
{
	int status = EXIT_NOTHING;

	for (size_t i = 0; i < n; i++) {
		if (row[i].answer.doubts & (1u << REPLAY_CARD | 1u << REPLAY_FALLBACK | 1u << REPLAY_DAMAGED))
			return EXIT_TROUBLE;
		if (!row[i].answer.fits || row[i].growth.bytes || row[i].answer.doubts & 1u << REPLAY_RISING)
			status = EXIT_FOUND;
	}
	return status;
}

/* Played back, a program does not react to what happens to it. */
static void tell_misfit(char *const *program, const struct what_if_row *row, size_t n)
{
	for (size_t i = 0; program && i < n; i++)
		if (!row[i].answer.fits) {
			printf("  where it does not fit, it runs out of memory; whether it catches that and goes on with less is not known\n\n");
			return;
		}
}

static json_t *rows_json(const struct what_if_row *row, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, what_if_card_json(&row[i]));
	return list;
}

static json_t *replays_json(const struct replays *all)
{
	json_t *list = json_array();

	for (size_t i = 0; i < all->n; i++)
		json_array_append_new(list,
				      what_if_head_json(all->list[i].trace, all->list[i].device, all->list[i].replay));
	return list;
}

/* It runs out of memory for what its steps have left: nothing that needs less at once is a remedy. And a convolution that may do with less is no
 * way out if the tensors alone are too large for the card at the end. */
static bool grows_too_large(struct what_if_row *row, const struct replays *all, const struct card_model *card)
{
	bool why = false;

	for (size_t i = 0; i < all->n && row->growth.bytes; i++) {
		struct replayed *r = &all->list[i];
		const struct turns_left *left = &replayed_left(r)->left;
		struct replay_question q = replay_same(r->replay);

		what_if_on_card(&q, r, card);
		why |= per_turn_is_why(r->replay, left, &row->answer);
		if (!row->answer.fits && left->in_use > replay_room(r->replay, &q))
			row->answer.doubts &= ~(1u << REPLAY_FALLBACK);
	}
	return why;
}

/* What was played back is the beginning of the program, if it was ended: that it fits so far is all that is known. A program that
 * does not fit so far does not fit. */
static void doubt_later(struct what_if_row *row, const struct fit_run *run)
{
	if (run->stopped && row->answer.fits)
		row->answer.doubts |= 1u << (run->settled || row->growth.bytes ? REPLAY_LATER : REPLAY_RISING);
}

/* `grows`: that is why it does not fit, or will not. `run`: how what was recorded ended. */
static int card_answer(struct fit *f, struct what_if_row *row, struct replays *all, char *const *program,
		       const struct fit_run *run, const struct card_model *card, bool *grows, struct err *e)
{
	int rc = fits_on(f, row, all, card, program, e);

	if (rc)
		return rc;
	find_growth(row, all, card, run, &f->pool);
	*grows = grows_too_large(row, all, card);
	if (!*grows)
		find_remedy(row, all, card, &f->pool);
	doubt_later(row, run);
	return 0;
}

/* Of a changed program: no dry run on the card itself decides, there are too many of them. */
static int changed_answer(void *of, struct what_if_row *row, struct replays *all, const struct fit_run *run,
			  const struct card_model *card)
{
	bool grows;

	return card_answer(of, row, all, NULL, run, card, &grows, &(struct err){0});
}

/* What makes it fit on those cards on which it does not. */
static void remedies_show(struct fit *f, const struct what_if_row *row, bool grows, json_t *to)
{
	const struct card_model *card[CARDS_MAX];
	struct what_if_row misfit[CARDS_MAX];
	struct fit_menu m = {.runs = &f->runs, .pool = &f->pool, .base = f->base, .program = f->program, .card = card,
			     .row = misfit, .grows = grows, .answer = changed_answer, .say = say, .of = f};

	for (size_t i = 0; i < f->n_cards; i++)
		if (!row[i].answer.fits || (row[i].growth.bytes && !fit_remedy_fits(&row[i]))) {
			card[m.n] = f->card[i];
			misfit[m.n++] = row[i];
		}
	if (!m.n)
		return;
	fflush(stdout);
	fit_remedies_try(&m);
	JSON_ADD(to, J_VALUE("remedies", fit_remedies_json(&m)));
	if (!given.json)
		fit_remedies_print(stdout, &m);
}

/* Once more is once too often for a program whose writes are real. */
static bool writes_are_real(void)
{
	const char *writes = given.writes ? given.writes : getenv("CUWHY_WRITES_MODE");

	return writes && strcmp(writes, "real") == 0;
}

static void tell_left_out(const struct what_if_row *row, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!row[i].answer.fits) {
			say("what would make it fit was not tried: its writes are real, and each try runs it again\n");
			return;
		}
}

static int cards_show(struct fit *f, struct replays *all, char *const *program, const struct fit_run *run,
		      json_t *to, struct err *e)
{
	struct what_if_row row[CARDS_MAX];
	bool grows, any_grows = false;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < f->n_cards; i++) {
		rc = card_answer(f, &row[i], all, program, run, f->card[i], &grows, e);
		if (rc == 0 && given.gpu && !grows)	/* of all GPUs that there are, it would take long */
			find_smaller(&row[i], all, f->card[i]);
		any_grows |= grows || row[i].growth.bytes;
	}
	if (rc)
		return rc;
	JSON_ADD(to, J_VALUE("recorded", replays_json(all)), J_VALUE("cards", rows_json(row, f->n_cards)));
	if (!given.json) {
		for (size_t i = 0; i < all->n; i++)
			what_if_print_head(stdout, all->list[i].trace, all->list[i].device, all->list[i].replay, program);
		what_if_print(stdout, row, f->n_cards, &(struct what_if_style){.first = "GPU", .changes = true});
		tell_misfit(program, row, f->n_cards);
	}
	if (program && !given.no_remedies) {
		if (writes_are_real())
			tell_left_out(row, f->n_cards);
		else
			remedies_show(f, row, any_grows, to);
	}
	return status_of(row, f->n_cards);
}

static void tell_stopped(const struct fit_run *run)
{
	if (run->stopped)
		say("ended after %u optimizer step%s: %s\n", run->stopped, run->stopped == 1 ? "" : "s",
		    !run->settled ? "its memory was still rising"
			    : "its memory did not rise any more; what comes later (evaluation, longer batches) is not known");
}

static int fit_program(struct fit *f, json_t *to, struct err *e)
{
	struct replays all;
	struct fit_run run;
	int rc;

	say("a dry run on a simulated %s without a limit\n", f->base->name);
	rc = fit_run(&f->runs, &run, f->base, FIT_NO_LIMIT, f->program, e);
	if (rc == 0) {
		tell_stopped(&run);
		rc = run_open(&all, &run, e);
		if (rc == 0) {
			JSON_ADD(to, J_INT_OR_NULL("steps", run.stopped, run.stopped), J_BOOL("settled", run.settled));
			rc = cards_show(f, &all, f->program, &run, to, e);
			replays_close(&all);
		}
	}
	fit_run_release(&run);
	return rc;
}

static int fit_recordings(struct fit *f, char *const *paths, json_t *to, struct err *e)
{
	int status = EXIT_NOTHING, rc;
	json_t *list = json_array();

	for (; *paths && status >= 0; paths++) {
		json_t *one = JSON_OF(J_TEXT("recording", *paths));
		struct replays all;

		rc = replays_open(&all, *paths, e);
		if (rc == 0) {
			rc = cards_show(f, &all, NULL, &(struct fit_run){.settled = true}, one, e);
			replays_close(&all);
		}
		status = rc < 0 ? rc : rc > status ? rc : status;
		json_array_append_new(list, one);
	}
	JSON_ADD(to, J_VALUE("recordings", list));
	return status;
}

/* The values that were run, once for all cards. */
struct varying {
	struct fit *f;
	struct fit_vary vary;
	struct fit_sized *list;
	size_t n, cap;
	const struct card_model *card;
	bool decides;			/* a playback was not sure on this card: only a dry run on it decides */
	struct fit_run end;		/* how the largest run ended that fits this card */
	struct err *e;
};

#define NEAR 4				/* times as large: there, libraries do the same */

static struct fit_sized *value_run(struct varying *v, uint64_t value, char *const *program)
{
	struct fit_sized one = {.size = value};
	struct fit_run run;
	int rc;

	say("%s=%" PRIu64 ": a dry run without a limit\n", v->vary.name, value);
	rc = fit_run(&v->f->runs, &run, v->f->base, FIT_NO_LIMIT, program, v->e);
	if (rc == 0)
		rc = run_open(&one.all, &run, v->e);
	one.stopped = run.stopped;
	one.settled = run.settled;
	fit_run_release(&run);
	if (rc)
		return NULL;
	v->list = xgrow(v->list, v->n, &v->cap, sizeof(*v->list));
	v->list[v->n] = one;
	return &v->list[v->n++];
}

static struct fit_sized *value_find(struct varying *v, uint64_t value)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->list[i].size == value)
			return &v->list[i];
	return NULL;
}

/* Enough is recorded to expect what fits near this value: one more recording without a limit would tell nothing new. */
static bool value_expected(const struct varying *v, uint64_t value)
{
	size_t near = 0;

	for (size_t i = 0; i < v->n; i++) {
		uint64_t size = v->list[i].size;

		if (size + 1 == value || value + 1 == size)
			return true;
		near += size / NEAR <= value && value / NEAR <= size;
	}
	return near > 1;
}

static int value_answer(struct varying *v, uint64_t value, char *const *program, struct what_if_row *row,
			struct fit_run *end)
{
	struct fit_sized *tried = value_find(v, value);
	unsigned runs;
	int rc;

	if (!tried && v->decides && value_expected(v, value)) {
		*row = (struct what_if_row){.words = v->card->id};
		return decide(v->f, row, v->card, program,
			      pool_printf(&v->f->pool, "%s=%" PRIu64, v->vary.name, value), end, v->e);
	}
	if (!tried)
		tried = value_run(v, value, program);
	if (!tried)
		return v->e->code;
	*end = (struct fit_run){.stopped = tried->stopped, .settled = tried->settled};
	runs = v->f->runs.n;
	rc = fits_on(v->f, row, &tried->all, v->card, program, v->e);
	v->decides |= v->f->runs.n > runs;
	return rc;
}

static int value_ask(void *of, uint64_t value, bool *fits)
{
	struct varying *v = of;
	char **program = fit_vary_words(&v->vary, v->f->program, value), spare[32];
	struct what_if_row row;
	struct fit_run end;
	int rc = value_answer(v, value, program, &row, &end);

	fit_words_free(program);
	if (rc)
		return rc;
	*fits = row.answer.fits;
	if (*fits)
		v->end = end;
	format_bytes(spare, sizeof(spare), (double)row.answer.spare);
	if (*fits)
		say("%s=%" PRIu64 " fits on %s, %s to spare\n", v->vary.name, value, v->card->id, spare);
	else
		say("%s=%" PRIu64 " does not fit on %s\n", v->vary.name, value, v->card->id);
	return 0;
}

static uint64_t value_guess(void *of, uint64_t most)
{
	struct varying *v = of;

	return v->n < 2 ? 0 : fit_sizes_guess(v->list, v->n, v->card, most);
}

static void largest_print(const struct varying *v, const struct card_model *card, uint64_t largest)
{
	const struct fit_run *end = &v->end;
	char total[32], so_far[80] = "";

	if (end->stopped)
		snprintf(so_far, sizeof(so_far), ", as far as %u optimizer step%s%s", end->stopped,
			 end->stopped == 1 ? "" : "s", end->settled ? "" : " (its memory was still rising)");
	format_bytes(total, sizeof(total), (double)card->memory);
	printf("  %-12s  %-10s  ", card->id, total);
	if (largest < v->vary.from)
		printf("not even %s=%" PRIu64 " fits\n", v->vary.name, v->vary.from);
	else if (largest == v->vary.to)
		printf("%s=%" PRIu64 " fits%s: the largest that was asked for\n", v->vary.name, largest, so_far);
	else
		printf("%s=%" PRIu64 " fits%s, %" PRIu64 " does not\n", v->vary.name, largest, so_far, largest + 1);
}

static int fit_varying(struct fit *f, json_t *to, struct err *e)
{
	struct varying v = {.f = f, .e = e};
	struct fit_search search = {value_ask, value_guess, &v};
	int rc = fit_vary_parse(&v.vary, given.vary, e), status = EXIT_NOTHING;
	json_t *list = json_array();
	uint64_t largest;
	unsigned runs;

	for (size_t i = 0; rc == 0 && i < f->n_cards; i++) {
		v.card = f->card[i];
		v.decides = false;
		runs = f->runs.n;
		v.end = (struct fit_run){.settled = true};
		rc = fit_vary_largest(&v.vary, &search, &largest);
		if (rc)
			break;
		if (largest < v.vary.from || !v.end.settled)
			status = EXIT_FOUND;
		if (!given.json)
			largest_print(&v, v.card, largest);
		json_array_append_new(list, JSON_OF(J_TEXT("gpu", v.card->id), J_BYTES("total", v.card->memory),
						    J_INT_OR_NULL("largest", largest >= v.vary.from, largest),
						    J_INT("dry_runs", f->runs.n - runs),
						    J_INT_OR_NULL("steps", v.end.stopped, v.end.stopped),
						    J_BOOL("settled", v.end.settled)));
	}
	if (rc == 0)
		JSON_ADD(to, J_VALUE("vary", JSON_OF(J_TEXT("name", v.vary.name), J_INT("from", v.vary.from),
						     J_INT("to", v.vary.to), J_SHARED("cards", list))));
	json_decref(list);
	for (size_t i = 0; i < v.n; i++)
		replays_close(&v.list[i].all);
	free(v.list);
	free(v.vary.name);
	return rc ? rc : status;
}

static json_t *sized_json(const struct card_model *card, const struct fit_sizes_answer *a)
{
	json_t *doubts = what_if_doubts_json(a->doubts);

	for (unsigned i = 0; i < GROWTH_DOUBT_COUNT; i++)
		if (a->growth_doubts & 1u << i)
			json_array_append_new(doubts, json_text(growth_doubt_text((enum growth_doubt)i)));
	return JSON_OF(J_TEXT("gpu", card->id), J_BYTES("total", card->memory),
		       J_INT_OR_NULL("largest", a->largest, a->largest), J_INT("low", a->low), J_INT("high", a->high),
		       J_BOOL("exact", a->exact), J_VALUE("doubts", doubts));
}

static void sized_print(const struct fit_sizes *s, const struct card_model *card, const struct fit_sizes_answer *a)
{
	char total[32], between[64] = "";

	format_bytes(total, sizeof(total), (double)card->memory);
	if (a->low != a->high)
		snprintf(between, sizeof(between), "  between %" PRIu64 " and %" PRIu64, a->low, a->high);
	printf("  %-12s  %-10s  ", card->id, total);
	if (!a->largest)
		printf("none    %s%s\n", a->exact ? "yes" : "likely", between);
	else
		printf("%-6" PRIu64 "  %s%s%s\n", a->largest, a->exact ? "yes" : "likely", between,
		       a->largest == s->most ? "  larger ones were not tried" : "");
}

static void sized_print_doubts(unsigned doubts, unsigned growth_doubts)
{
	what_if_print_doubts(stdout, doubts);
	for (unsigned i = 0; i < GROWTH_DOUBT_COUNT; i++)
		if (growth_doubts & 1u << i)
			printf("  not exact: %s\n", growth_doubt_text((enum growth_doubt)i));
}

static json_t *sizes_json(const struct fit_sizes *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n; i++)
		json_array_append_new(list, json_integer((json_int_t)s->list[i].size));
	return list;
}

static int fit_sized(struct fit *f, json_t *to, struct err *e)
{
	json_t *list = json_array();
	struct fit_sizes s;
	int rc = fit_sizes_open(&s, given.sizes, f->program, e), status = EXIT_NOTHING;
	unsigned doubts = 0, growth_doubts = 0;

	if (rc == 0 && !given.json)
		printf("  %-12s  %-10s  %-6s  %s\n", "GPU", "MEMORY", "SIZE", "FITS");
	for (size_t i = 0; rc == 0 && i < f->n_cards; i++) {
		struct fit_sizes_answer a;

		fit_sizes_largest(&s, f->card[i], &a);
		doubts |= a.doubts;
		growth_doubts |= a.growth_doubts;
		status = a.largest ? status : EXIT_FOUND;
		json_array_append_new(list, sized_json(f->card[i], &a));
		if (!given.json)
			sized_print(&s, f->card[i], &a);
	}
	if (rc == 0 && !given.json)
		sized_print_doubts(doubts, growth_doubts);
	if (rc == 0)
		JSON_ADD(to, J_VALUE("sizes", JSON_OF(J_VALUE("recorded", sizes_json(&s)), J_SHARED("cards", list))));
	json_decref(list);
	fit_sizes_close(&s);
	return rc ? rc : status;
}

static bool is_recording(const char *word)
{
	return fs_is_dir(word) || str_ends(word, PART_SUFFIX);
}

static int check_options(int argc, int first, bool recordings, struct err *e)
{
	uint64_t n;

	if (first >= argc) {
		err_set(e, -EINVAL, "fit needs a program to run, or a recording");
		return err_hint(e, "for example: cuwhy fit -- python3 train.py");
	}
	if (given.steps && strcmp(given.steps, "all") != 0 && (!str_u64(given.steps, &n) || !n || n > 1000000))
		return err_set(e, -EINVAL, "--steps takes a number or all, not '%s'", given.steps);
	if (recordings && (given.writes || given.keep_writes))
		return err_set(e, -EINVAL, "--writes and --keep-writes need a program");
	if (given.writes && strcmp(given.writes, "real") != 0 && strcmp(given.writes, "discard") != 0)
		return err_set(e, -EINVAL, "--writes takes discard or real, not '%s'", given.writes);
	if (recordings && (given.steps || given.vary))
		return err_set(e, -EINVAL, "--steps and --vary need a program");
	if (!recordings && given.sizes) {
		err_set(e, -EINVAL, "--sizes needs recordings");
		return err_hint(e, "for a program: --vary batch-size=4..64");
	}
	if (given.vary && !given.gpu) {
		err_set(e, -EINVAL, "--vary needs to know for which GPU");
		return err_hint(e, "for example: --gpu a100-40gb");
	}
	return 0;
}

/* Once, whatever the number of dry runs. */
static void tell_writes(const struct fit_runs *r, json_t *to)
{
	if (!r->writes)
		return;
	JSON_ADD(to, J_SHARED("writes", r->writes));
	fflush(stdout);		/* this is the last line */
	if (!given.json)
		run_writes_tell_json(r->writes, r->keep, r->n > 1 ? "each dry run" : "the dry run", stderr);
}

static int fit_answer(struct fit *f, bool recordings, json_t *to, struct err *e)
{
	int rc = cards_choose(f, e);

	if (rc == 0 && recordings)
		return given.sizes ? fit_sized(f, to, e) : fit_recordings(f, f->program, to, e);
	if (rc == 0)
		rc = fit_runs_begin(&f->runs, e);
	if (rc == 0)
		rc = given.vary ? fit_varying(f, to, e) : fit_program(f, to, e);
	tell_writes(&f->runs, to);
	fit_runs_end(&f->runs);
	return rc;
}

int fit_try(const char *gpu, char **program, bool json, json_t *to, struct err *e)
{
	struct fit f = {.runs = {.devices = 1, .steps = "auto"}, .program = program};
	int rc;

	given.gpu = gpu;
	given.json = json;
	JSON_ADD(to, J_INT("schema", 1));
	rc = fit_answer(&f, false, to, e);
	JSON_ADD(to, J_BOOL("fits", rc == EXIT_NOTHING));
	pool_release(&f.pool);
	return rc;
}

int cmd_fit(int argc, char **argv)
{
	struct fit f = {.runs.devices = 1};
	struct err e = {0};
	int first = opt_parse(&usage, options, argc, argv, &e), rc = first;
	bool recordings = first > 0 && first < argc && strcmp(argv[first - 1], "--") != 0 && is_recording(argv[first]);
	json_t *to = JSON_OF(J_INT("schema", 1));

	if (given.json)
		progress_disable();
	if (first >= 0 && given.help) {
		opt_help(stdout, &usage, options);
		json_decref(to);
		return cmd_finish(EXIT_NOTHING);
	}
	if (first >= 0)
		rc = check_options(argc, first, recordings, &e);
	f.runs.steps = given.steps ? given.steps : "auto";
	f.runs.how = given.writes;
	f.runs.keep = given.keep_writes;
	f.program = argv + (first > 0 ? first : 0);
	if (rc == 0)
		rc = fit_answer(&f, recordings, to, &e);
	pool_release(&f.pool);
	if (rc >= 0 && given.json) {
		JSON_ADD(to, J_BOOL("fits", rc == EXIT_NOTHING));
		json_print(stdout, to);
	} else {
		json_decref(to);
	}
	return rc < 0 ? cmd_fail(stdout, given.json, &e, EXIT_TROUBLE) : cmd_finish(rc);
}
