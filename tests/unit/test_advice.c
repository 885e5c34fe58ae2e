/* SPDX-License-Identifier: Apache-2.0
 * What causes advise, whatever facts are known: no sentence and no command appears twice, no fix lacks its command.
 * Facts are chosen at random from the words and numbers in the guards, with a fixed seed.
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <cmocka.h>

#include "base/mem.h"
#include "compat/cuda_errors.h"
#include "verdict/verdict.h"
#include "verdict/rules/cause_page.h"
#include "verdict/rules/destroys.h"
#include "knowledge/compile/compile.h"
#include "verdict/rules/rules.h"
#include "verdict/rules/template.h"

#define ROUNDS 2000
#define SAID_MAX 64
#define WORDS_MAX 96

/* Reports everything that is wrong before the test fails, once per cause. */
static int wrong;

#define WRONG(...) (wrong++, print_error(__VA_ARGS__))

static uint64_t seed;

static void seed_of(const char *id)
{
	seed = 88172645463325252ull;
	while (*id)
		seed = seed * 31 + (unsigned char)*id++;
}

static unsigned draw(unsigned below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % below;
}

struct words {
	char text[WORDS_MAX][64];
	double number[WORDS_MAX];
	size_t n_text, n_number;
};

/* cuda.name and threshold.name are numbers under another name, cuda_set.name several. */
static void numbers_of_name(struct words *w, const char *name, size_t len)
{
	const uint16_t *codes;
	size_t n = 0;

	if (!strncmp(name, "cuda.", 5) && w->n_number < WORDS_MAX)
		w->number[w->n_number++] = cuda_code_find(name + 5, len - 5);
	else if (!strncmp(name, "threshold.", 10) && w->n_number < WORDS_MAX)
		assert_true(expr_threshold(name + 10, len - 10, &w->number[w->n_number++]));
	else if (!strncmp(name, "cuda_set.", 9))
		n = cuda_error_set_codes((enum cuda_error_set)cuda_error_set_find(name + 9, len - 9), &codes);
	for (size_t i = 0; i < n && w->n_number < WORDS_MAX; i++)
		w->number[w->n_number++] = codes[i];
}

static void words_of_guard(struct words *w, const char *s)
{
	while (s && *s) {
		char *end;

		if (*s == '"') {
			const char *close = strchr(s + 1, '"');
			size_t len = close ? (size_t)(close - s - 1) : 0;

			if (!close)
				return;
			if (w->n_text < WORDS_MAX && len < sizeof(w->text[0]))
				snprintf(w->text[w->n_text++], sizeof(w->text[0]), "%.*s", (int)len, s + 1);
			s = close + 1;
		} else if (isalpha((unsigned char)*s)) {	/* digits in a fact's name are not numbers */
			const char *name = s;

			while (isalnum((unsigned char)*s) || *s == '_' || *s == '.')
				s++;
			numbers_of_name(w, name, (size_t)(s - name));
		} else if (isdigit((unsigned char)*s)) {
			double number = strtod(s, &end);

			if (w->n_number < WORDS_MAX)
				w->number[w->n_number++] = number;
			s = end;
		} else {
			s++;
		}
	}
}

static void words_collect(struct words *w, const struct cause *c)
{
	memset(w, 0, sizeof(*w));
	for (const struct advice *a = AT(c->headline); a; a = AT(a->next))
		words_of_guard(w, AT(a->guard_text));
	for (const struct advice *a = AT(c->why); a; a = AT(a->next))
		words_of_guard(w, AT(a->guard_text));
	for (const struct advice *a = AT(c->fix); a; a = AT(a->next))
		words_of_guard(w, AT(a->guard_text));
}

/* Different facts often have the same value, such as gpu.cc and device.cc: then sentences with either are the same. */
static void fact_draw(struct casefile *f, enum fact_id id, const struct words *w, unsigned unknown)
{
	if (draw(100) < unknown)
		return;
	switch (fact_type(id)) {
	case TYPE_FLAG:
		fact_set_flag(f, id, draw(2));
		break;
	case TYPE_NUMBER:
		fact_set_number(f, id,
				w->n_number && draw(2) ? w->number[draw((unsigned)w->n_number)] + draw(3) - 1 : draw(3));
		break;
	case TYPE_TEXT:
		fact_set_text(f, id, w->n_text && draw(2) ? w->text[draw((unsigned)w->n_text)] : draw(4) ? "8" : "");
		break;
	default:
		break;
	}
}

/* A recording, a text or a machine is examined alone; a machine can also come with a recording. */
static void facts_draw(struct casefile *f, struct pool *pool, const struct words *w)
{
	unsigned unknown = 10 + draw(9) * 10, kind = draw(3);

	case_init(f, pool);
	for (int id = 0; id < FACT_COUNT; id++)
		fact_draw(f, (enum fact_id)id, w, unknown);
	fact_set_flag(f, FACT_text_is, kind == 0);
	fact_set_flag(f, FACT_machine_is, kind == 1 || (kind == 2 && draw(2)));
}

struct said_list {
	const struct cause *cause;
	const char *text[SAID_MAX], *command[SAID_MAX];
	size_t n;
};

static void collect(void *arg, const char *text, const char *command)
{
	struct said_list *l = arg;

	assert_true(l->n < SAID_MAX);
	l->text[l->n] = text;
	l->command[l->n++] = command;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The words of a command in alphabetical order, without its comment: equal for the same command in another order or
 * spacing. */
static char *command_sorted(const char *command, struct pool *pool)
{
	char *copy = pool_strdup(pool, command), *word[256], *save = NULL, *out = pool_strdup(pool, "");
	char *comment = strstr(copy, " #");
	size_t n = 0;

	if (comment && !strchr(comment, '\n'))
		*comment = '\0';
	for (char *t = strtok_r(copy, " \n", &save); t && n < 256; t = strtok_r(NULL, " \n", &save))
		word[n++] = t;
	qsort(word, n, sizeof(*word), by_text);
	for (size_t i = 0; i < n; i++)
		out = pool_printf(pool, "%s %s", out, word[i]);
	return out;
}

static void said_check(const struct said_list *l, struct pool *pool)
{
	char *command[SAID_MAX];

	for (size_t i = 0; i < l->n; i++) {
		command[i] = l->command[i] ? command_sorted(l->command[i], pool) : NULL;
		for (size_t k = 0; k < i; k++) {
			if (!strcmp(l->text[i], l->text[k]))
				WRONG("%s says twice: %s\n", AT(l->cause->id), l->text[i]);
			if (command[i] && command[k] && !strcmp(command[i], command[k]))
				WRONG("%s has one command twice: %s\n", AT(l->cause->id), l->command[i]);
		}
	}
}

static const struct advice *fix_said(const struct cause *c, const struct casefile *f, struct pool *pool, const char *text)
{
	for (const struct advice *a = AT(c->fix); a; a = AT(a->next)) {
		char *said = template_expand(AT(a->text), f, pool);

		if (said && !strcmp(said, text) && AT(a->command))
			return a;
	}
	return NULL;
}

/* A command with an empty value in it is left out; one with an unknown value needs a guard. */
static bool lacks_guard(const struct advice *a, const struct casefile *f, struct pool *pool)
{
	struct casefile full = *f;

	for (int id = 0; id < FACT_COUNT; id++)
		if (fact_type((enum fact_id)id) == TYPE_TEXT && fact_known(f, (enum fact_id)id) &&
		    !fact_text(f, (enum fact_id)id)[0])
			fact_set_text(&full, (enum fact_id)id, "8");
	return !template_expand(AT(a->command), &full, pool);
}

static void cause_check(const struct cause *c, const struct casefile *f, struct pool *pool)
{
	struct said_list why = {.cause = c}, fix = {.cause = c};

	advice_each(AT(c->why), f, pool, collect, &why);
	advice_each(AT(c->fix), f, pool, collect, &fix);
	said_check(&why, pool);
	said_check(&fix, pool);
	for (size_t i = 0; i < fix.n; i++) {
		const struct advice *a = fix.command[i] ? NULL : fix_said(c, f, pool, fix.text[i]);

		if (a && lacks_guard(a, f, pool))
			WRONG("%s says without its command: %s\n", AT(c->id), fix.text[i]);
	}
}

static void advice__nothing_is_said_twice_whatever_is_known(void **state)
{
	(void)state;
	for (const struct cause *c = AT(kb_get()->first); c; c = AT(c->next)) {
		struct words w;

		int before = wrong;

		words_collect(&w, c);
		seed_of(AT(c->id));	/* changing one cause does not change the random facts of the others */
		for (int i = 0; i < ROUNDS && wrong == before; i++) {
			struct pool pool = {0};
			struct casefile f;

			facts_draw(&f, &pool, &w);
			cause_check(c, &f, &pool);
			pool_release(&pool);
		}
	}
	assert_int_equal(wrong, 0);
}

/* A failed kernel whose line is known: from a core dump, or because only one line launched anything. */
static void line_known_draw(struct casefile *f, struct pool *pool, const char *kind, bool torch)
{
	case_init(f, pool);
	fact_set_number(f, FACT_error_code, 719);
	fact_set_flag(f, FACT_error_async, true);
	fact_set_flag(f, FACT_torch_loaded, torch);
	fact_set_number(f, FACT_suspects_lines, 1);
	if (!kind[0])
		return;
	fact_set_text(f, FACT_fault_kind, kind);
	fact_set_number(f, FACT_fault_lines, 1);
}

static void advice__a_line_that_is_known_is_not_searched_for(void **state)
{
	static const char *const kinds[] = {"", "illegal-address", "misaligned-address", "trap", "assert"};

	(void)state;
	for (const struct cause *c = AT(kb_get()->first); c; c = AT(c->next))
		for (size_t i = 0; i < 2 * sizeof(kinds) / sizeof(*kinds); i++) {
			struct said_list fix = {.cause = c};
			struct pool pool = {0};
			struct casefile f;

			line_known_draw(&f, &pool, kinds[i / 2], i % 2);
			advice_each(AT(c->fix), &f, &pool, collect, &fix);
			for (size_t k = 0; k < fix.n; k++)
				if (fix.command[k] && (strstr(fix.command[k], "CUDA_LAUNCH_BLOCKING") ||
						       strstr(fix.command[k], "compute-sanitizer")))
					fail_msg("%s, the line being known: %s", AT(c->id), fix.text[k]);
			pool_release(&pool);
		}
}

static void advice__a_fault_whose_line_is_known_still_has_advice(void **state)
{
	static const struct {
		const char *cause, *kind;
	} faults[] = {{"misaligned-address", "misaligned-address"}, {"kernel-trap", "trap"},
		      {"illegal-access-out-of-bounds", "illegal-address"},
		      {"illegal-access-use-after-free", "illegal-address"}};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		struct said_list fix = {.cause = kb_find(kb_get(), faults[i].cause)};
		struct pool pool = {0};
		struct casefile f;

		line_known_draw(&f, &pool, faults[i].kind, false);
		advice_each(AT(fix.cause->fix), &f, &pool, collect, &fix);
		assert_true(fix.n > 0);
		pool_release(&pool);
	}
}

/* "certain: " stands before it in the answer. */
static size_t check_reasons(const struct when *w)
{
	static const char *const sure[] = {"certain", "likely", "possibl", "perhaps"};
	size_t n = 0;

	for (; w; w = AT(w->next)) {
		const char *said = AT(w->because) ? AT(AT(w->because)->text) : NULL;

		if (!said)
			continue;
		for (size_t i = 0; i < sizeof(sure) / sizeof(*sure); i++)
			if (!strncmp(said, sure[i], strlen(sure[i])))
				fail_msg("%s", said);
		if (said[strlen(said) - 1] == '.')
			fail_msg("a period: %s", said);
		n++;
	}
	return n;
}

static void advice__a_reason_does_not_say_how_sure_it_is(void **state)
{
	size_t n = 0;

	(void)state;
	for (const struct cause *c = AT(kb_get()->first); c; c = AT(c->next))
		n += check_reasons(AT(c->when)) + check_reasons(AT(c->evidence));
	assert_true(n > 500);
}

/* The title is used when no headline applies: it follows "cuwhy: perhaps", and names keep their capital letter. */
static void advice__titles_serve_as_headlines(void **state)
{
	static const char *const names[] = {"PyTorch", "Triton", "Windows", "Python",
					    "Docker",  "Fabric", "Linux",   "Slurm"};
	struct pool pool = {0};
	struct casefile f;

	(void)state;
	case_init(&f, &pool);
	for (const struct cause *c = AT(kb_get()->first); c; c = AT(c->next)) {
		const char *said = cause_headline(c, &f, &pool);

		assert_true(islower((unsigned char)said[0]) || isupper((unsigned char)said[1]) || said[0] == '/');
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			if (!strncasecmp(said, names[i], strlen(names[i])))
				fail_msg("the headline of %s begins with a name: %s", AT(c->id), said);
	}
	pool_release(&pool);
}

static void advice__the_first_headline_that_can_be_said_is_taken(void **state)
{
	const struct cause *c = kb_find(kb_get(), "compute-mode-exclusive");
	struct pool pool = {0};
	struct casefile f;

	(void)state;
	case_init(&f, &pool);
	assert_string_equal(cause_headline(c, &f, &pool),
			    "the GPU is in use, and its compute mode allows only one process");
	fact_set_text(&f, FACT_gpu_mode, "default");
	fact_set_text(&f, FACT_gpu_name, "NVIDIA L4");
	assert_string_equal(cause_headline(c, &f, &pool), "NVIDIA L4 is busy or unavailable");
	fact_set_text(&f, FACT_gpu_mode, "prohibited");
	assert_string_equal(cause_headline(c, &f, &pool), "NVIDIA L4 is in compute mode prohibited");
	assert_string_equal(cause_headline(kb_find(kb_get(), "oom-growth"), &f, &pool),
			    "memory grows: tensors from one line pile up until the GPU is full");
	pool_release(&pool);
}

static void advice__what_destroys_is_known_by_its_words(void **state)
{
	static const char *const does[] = {"kill 4242",
					   "pip uninstall -y torch && pip install torch",
					   "ls; sudo rm -f /dev/shm/nccl-*",
					   "sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm || sudo reboot",
					   "sudo apt-get install nvidia-driver-580-open",
					   "sudo nvidia-smi --gpu-reset -i 0",
					   "wsl --shutdown", "apt-get purge 'cuda-compat-*'"};
	static const char *const does_not[] = {"docker run --rm --gpus all ...", "nvidia-smi -q", "python -m pip check",
					       "pip install torch",
					       "dpkg -l | grep -E \"libnvidia-compute|nvidia-driver\"",
					       "sudo dmesg | grep -iE \"out of memory|oom-kill\"", "cat rm.txt"};

	(void)state;
	for (size_t i = 0; i < sizeof(does) / sizeof(*does); i++)
		assert_true(command_destroys(does[i]));
	for (size_t i = 0; i < sizeof(does_not) / sizeof(*does_not); i++)
		assert_false(command_destroys(does_not[i]));
}

static void guess_check(const struct cause *c, const struct words *w)
{
	struct match m = {.cause = c, .sure = KB_LIKELY};
	struct verdict *v = verdict_new(AT(c->id));

	facts_draw(&v->c, &v->pool, w);
	verdict_of_cause(v, &m, &v->c);
	for (const struct said *s = v->fix; s; s = s->next) {
		if (s->command && command_destroys(s->command))
			WRONG("%s, a guess, advises: %s\n", AT(c->id), s->command);
		if (!s->command && strstr(s->text, "; then") && strlen(strstr(s->text, "; then")) == 6)
			WRONG("%s needs the command that was held back: %s\n", AT(c->id), s->text);
	}
	verdict_free(v);
}

static void advice__a_guess_destroys_nothing(void **state)
{
	(void)state;
	for (const struct cause *c = AT(kb_get()->first); c; c = AT(c->next)) {
		struct words w;
		int before = wrong;

		words_collect(&w, c);
		seed_of(AT(c->id));
		for (int i = 0; i < ROUNDS / 10 && wrong == before; i++)
			guess_check(c, &w);
	}
	assert_int_equal(wrong, 0);
}

static void advice__doubt_holds_back_what_was_certain(void **state)
{
	struct match m = {.cause = kb_find(kb_get(), "driver-library-mismatch"), .sure = KB_CERTAIN};
	struct verdict *v = verdict_new("unknown");

	(void)state;
	verdict_of_cause(v, &m, &v->c);
	assert_string_equal(v->fix->command, "sudo reboot");
	verdict_cap(v, SURE_LIKELY, "the inputs may be of two runs");
	assert_null(v->fix->command);
	assert_true(strstr(v->fix->text, "once this is confirmed: after a driver upgrade: restart") == v->fix->text);
	assert_true(strstr(v->fix->next->text, "or, once this is confirmed: end every") == v->fix->next->text);
	verdict_free(v);
}

static void sample_check(const struct cause *c, const struct template *t, const struct casefile *f, struct pool *pool)
{
	if (t && !template_expand(t, f, pool))
		WRONG("%s has a fact without a sample in kb/samples.def: %s\n", AT(c->id), AT(t->text));
}

static void advice__every_sentence_of_a_page_has_its_samples(void **state)
{
	struct pool pool = {0};
	struct casefile f;

	(void)state;
	case_init(&f, &pool);
	samples_observe(&f);
	for (const struct cause *c = AT(kb_get()->first); c; c = AT(c->next)) {
		for (const struct when *w = AT(c->when); w; w = AT(w->next))
			sample_check(c, AT(w->because), &f, &pool);
		for (const struct advice *a = AT(c->fix); a; a = AT(a->next)) {
			sample_check(c, AT(a->text), &f, &pool);
			sample_check(c, AT(a->command), &f, &pool);
		}
	}
	pool_release(&pool);
	assert_int_equal(wrong, 0);
}

static void advice__a_page_says_nothing_twice(void **state)
{
	(void)state;
	for (const struct cause *c = AT(kb_get()->first); c; c = AT(c->next)) {
		struct said_list fix = {.cause = c};
		struct pool pool = {0};

		for (const struct said *s = cause_fixes(c, &pool); s; s = s->next)
			collect(&fix, s->text, s->command);
		said_check(&fix, &pool);
		assert_true(!fix.n || (strncmp(fix.text[0], "or ", 3) && strncmp(fix.text[0], "and ", 4)));
		pool_release(&pool);
	}
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(advice__nothing_is_said_twice_whatever_is_known),
		cmocka_unit_test(advice__a_line_that_is_known_is_not_searched_for),
		cmocka_unit_test(advice__a_fault_whose_line_is_known_still_has_advice),
		cmocka_unit_test(advice__a_reason_does_not_say_how_sure_it_is),
		cmocka_unit_test(advice__titles_serve_as_headlines),
		cmocka_unit_test(advice__the_first_headline_that_can_be_said_is_taken),
		cmocka_unit_test(advice__what_destroys_is_known_by_its_words),
		cmocka_unit_test(advice__a_guess_destroys_nothing),
		cmocka_unit_test(advice__doubt_holds_back_what_was_certain),
		cmocka_unit_test(advice__every_sentence_of_a_page_has_its_samples),
		cmocka_unit_test(advice__a_page_says_nothing_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
