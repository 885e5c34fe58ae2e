/* SPDX-License-Identifier: Apache-2.0
 * Every cause has a recording that fires it and a near miss that does not; and the cause files themselves:
 * all load, mistakes in them are found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "dump_find.h"
#include "judge.h"
#include "knowledge/compile/compile.h"
#include "verdict/rules/expr.h"
#include "verdict/rules/rules.h"

#define G(x, y, z) ((const uint32_t[3]){x, y, z})
#define GIB (1ull << 30)

static void expect(struct tb *b, const char *cause, const char *certainty)
{
	json_t *j = judge(b, 1);

	assert_string_equal(field(j, "cause"), cause);
	assert_string_equal(field(j, "certainty"), certainty);
	json_decref(j);
}

/* The cause is not even a candidate. */
static void expect_not(struct tb *b, const char *cause)
{
	json_t *j = judge(b, 1);

	assert_string_not_equal(field(j, "cause"), cause);
	assert_false(mentions(j, "candidates", cause));
	json_decref(j);
}

static struct cw_failure *launch(struct tb *b, uint32_t code, const uint32_t grid[3], const uint32_t block[3],
				 uint32_t shared)
{
	tb_init(b);
	return tb_fail_launch(b, code, tb_stack(b, USER, NULL), tb_function(b, "_Z4fillPfl"), grid, block,
			      shared);
}

static void kb__every_cause_has_rules_and_something_to_say(void **state)
{
	(void)state;
	assert_true(kb_get()->n >= 22);
	for (const struct cause *c = AT(kb_get()->first); c; c = AT(c->next)) {
		bool silent = !strcmp(AT(c->id), "none") || !strcmp(AT(c->id), "unknown");

		assert_true(silent || AT(c->when));
		assert_true(!strcmp(AT(c->id), "none") || (AT(c->why) && AT(c->fix)));
	}
}

/* The text is rejected for this reason, and the message says where. */
static void refused(const char *text, const char *place, const char *reason)
{
	struct err e = {0};
	struct kb *kb = kb_parse(text, strlen(text), &e);

	if (kb)
		fail_msg("accepted: %s", text);
	if (!strstr(e.msg, place) || !strstr(e.msg, reason))
		fail_msg("not for the reason '%s', but: %s", reason, e.msg);
}

static void accepted(const char *text)
{
	struct err e = {0};
	struct kb *kb = kb_parse(text, strlen(text), &e);

	if (!kb)
		fail_msg("refused: %s", e.msg);
	free(kb);
}

/* A cause with these lines in its header; with these lines after it. */
#define HEADER(lines) "%%% a\n---\nid: a\ntitle: t\n" lines "---\ntext\n"
#define BODY(lines) "%%% a\n---\nid: a\ntitle: t\n---\ntext\n" lines

static void kb__mistakes_in_a_file_are_found(void **state)
{
	static const struct {
		const char *text, *reason;
	} bad[] = {
		{"%%% a\n---\nid: b\ntitle: t\n---\ntext\n", "differs from the file's name"},
		{"%%% a\n---\nid: a\n---\ntext\n", "needs a title"},
		{ "%%% a\n---\nid: a\ntitle: t\n---\n", "needs a title and a definition" },
		{ "%%% a\n---\nid: a\ntitle: t\n", "does not end" },
		{HEADER("color: red\n"), "unknown key"},
		{HEADER("no colon\n"), "key: value"},
		{HEADER("when certain r: no.such.fact\n"), "no such fact"},
		{ HEADER("when surely r: launch.is\n"), "certain, likely or possible" },
		{ HEADER("when certain r: error.code\n"), "must be true or false" },
		{HEADER("when certain r: launch.is\n  because: {nothing}\n"), "no such fact"},
		{HEADER("when certain: launch.is\n"), "an id of its own"},
		{HEADER("when certain Rule: launch.is\n"), "an id of its own"},
		{HEADER("when certain r: launch.is\nwhen likely r: launch.is\n"), "the same id"},
		{HEADER("  because: early\n"), "belongs to a when"},
		{HEADER("headline: {x}\n"), "no such fact"},
		{BODY("## Why\n- [launch.is text\n"), "[ without ]"},
		{ BODY("## Why\n- [error.code] text\n"), "must be true or false" },
		{BODY("## Why\n- {no.such}\n"), "no such fact"},
		{BODY("## Fix\n- text\n    cmd {no.such}\n"), "no such fact"},
		{BODY("## Fix\nnot a list\n"), "begins with '- '"},
		{BODY("## Fix\n    command alone\n"), "without a sentence"},
		{BODY("## Because\n"), "unknown section"},
		{HEADER("program: p.py\n"), "is missing (tools/make_kb.sh"},
		{HEADER("program: p.py\n") "## Program\nf()\n", "indented"},
		{BODY("## Program\n    f()\n"), "unknown section"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refused(bad[i].text, "kb/causes/a.md line", bad[i].reason);
}

#define SIGNS "%%% signs/s.kb\n# a comment\n\n"
#define SOURCE "\n  source: a test\n"

static void kb__a_rule_uses_signs_and_no_phrases(void **state)
{
	(void)state;
	refused(HEADER("when likely r: text.is && says(\"some words\")\n"), "kb/causes/a.md line 5",
		"phrases belong in a sign");
	refused(HEADER("when likely r: contains(error.text, \"words\")\n"), "kb/causes/a.md line",
		"phrases belong in a sign");
	refused(HEADER("headline: [matches(error.text, \"*words*\")] a\n"), "kb/causes/a.md line",
		"phrases belong in a sign");
	refused(BODY("## Why\n- [contains(error.text, \"words\")] a\n"), "kb/causes/a.md line",
		"phrases belong in a sign");
	refused(BODY("## Fix\n- a\n    b {min(1, contains(error.text, \"words\"))}\n"), "kb/causes/a.md line",
		"phrases belong in a sign");
	accepted(SIGNS "words: says(\"some words\")" SOURCE HEADER("when likely r: sign.words && error.raised\n"));
	accepted(HEADER("when likely r: sign.words\n") SIGNS "words: says(\"some words\")" SOURCE);
	accepted(SIGNS "quoted: says(\"some \\\"Quoted\\\" words\")" SOURCE HEADER("when likely r: sign.quoted\n"));
}

#define ASKS(asked)                                                                                                    \
	SIGNS "words: says(\"some words\")" SOURCE "both: error.raised && sign.words" SOURCE                           \
	      "either: error.raised || says(\"other words\")" SOURCE                                                    \
	      "raised: contains(error.text, \"words\")" SOURCE HEADER("when likely r: " asked "\n")
#define BESIDE_TEXT(asked) {ASKS(asked), ASKS("text.is && " asked)}

/* `text.is` where it decides nothing makes a rule look like one that must not hold for recordings. */
static void kb__a_rule_does_not_ask_for_a_text_in_vain(void **state)
{
	static const struct {
		const char *alone, *beside;
	} vain[] = {
			BESIDE_TEXT("sign.words"),
			BESIDE_TEXT("sign.both"),
			BESIDE_TEXT("(sign.words || text.gpus == 2)"),
			BESIDE_TEXT("error.raised && text.hangs"),
			BESIDE_TEXT("!text.hangs"),
			BESIDE_TEXT("known(text.gpus)"),
		BESIDE_TEXT("sign.raised"),
		},
	  needed[] = {
		  BESIDE_TEXT("error.raised"),
		  BESIDE_TEXT("sign.either"),
		  BESIDE_TEXT("(sign.words || error.raised)"),
		  BESIDE_TEXT("!sign.words"),
		  BESIDE_TEXT("!known(text.gpus)"),
	  };

	(void)state;
	for (size_t i = 0; i < sizeof(vain) / sizeof(vain[0]); i++) {
		accepted(vain[i].alone);
		refused(vain[i].beside, "kb/causes/a.md line", "'text.is' beside words");
	}
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		accepted(needed[i].beside);
}

static void kb__mistakes_in_a_sign_are_found(void **state)
{
	(void)state;
	refused(HEADER("when likely r: sign.words\n"), "kb/causes/a.md line 5", "there is no sign 'words'");
	refused(SIGNS "a: sign.b" SOURCE, "kb/signs/s.kb line 3", "there is no sign 'b'");
	refused(SIGNS "a: sign.b" SOURCE "b: text.is && sign.a" SOURCE, "kb/signs/s.kb line",
		"the sign 'a' refers to itself");
	refused(SIGNS "a: error.code" SOURCE, "kb/signs/s.kb line 3", "must be true or false");
	refused(SIGNS "a: says(\"abc\")" SOURCE, "kb/signs/s.kb line 3", "six characters");
	refused(SIGNS "a: says(\"some words\")\n", "kb/signs/s.kb line", "needs its source");
	refused(SIGNS "a: says(\"some words\")\n  source:\n", "kb/signs/s.kb line", "needs its source");
	refused(SIGNS "a: text.is" SOURCE "a: text.is" SOURCE, "kb/signs/s.kb line 5", "already a sign with that name");
	refused(SIGNS "A b: text.is" SOURCE, "kb/signs/s.kb line 3", "some_name: expression");
	refused(SIGNS "  source: early\n", "kb/signs/s.kb line 3", "belongs to a sign");
	refused(SIGNS "a: text.is" SOURCE "  && text.error\n", "kb/signs/s.kb line 5", "one line");
}

static void kb__every_sign_is_used(void **state)
{
	(void)state;
	for (const struct kb_sign *s = AT(kb_get()->signs); s; s = AT(s->next))
		if (!s->used)
			fail_msg("%s line %d: nothing uses the sign '%s'", AT(s->file), (int)s->line, AT(s->name));
}

/* words that nobody has seen match nothing, or the wrong thing */
static void kb__no_sign_has_words_that_were_made_up(void **state)
{
	(void)state;
	for (const struct kb_sign *s = AT(kb_get()->signs); s; s = AT(s->next))
		if (strstr(AT(s->source), "unseen"))
			fail_msg("%s line %d: the words of '%s' were seen nowhere", AT(s->file), (int)s->line,
				 AT(s->name));
}

static void collect(char *to, const char *words)
{
	size_t n = strlen(to);

	snprintf(to + n, 100 - n, "%s.", words);
}

static void collect_words(void *arg, const struct expr *says)
{
	collect(arg, AT(says->text));
}

static void check_number(void *arg, const struct expr *says)
{
	const struct word_table *t = arg;

	assert_in_range(says->word, t->n_fixed, t->n - 1);
	assert_string_equal(word_text(t, says->word), AT(says->text));
}

static void kb__a_sign_is_what_it_rests_on(void **state)
{
	static const char text[] = SIGNS "either: says(\"first words\",\n  \"second words\")" SOURCE
		      "both: sign.either && text.error" SOURCE HEADER(
			      "when likely r: text.is && !sign.both || sign.either && error.raised\n");
	struct err e = {0};
	struct kb *kb = kb_parse(text, strlen(text), &e);
	const struct when *w = kb ? AT(AT(kb->first)->when) : NULL;
	char words[100] = "";

	(void)state;
	if (!kb)
		fail_msg("%s", e.msg);
	/* for people it is expanded, in parentheses where needed */
	assert_string_equal(AT(w->text), "text.is && !(says(\"first words\", \"second words\") && text.error)"
					 " || says(\"first words\", \"second words\") && error.raised");
	/* its phrases are the rule's */
	expr_says(AT(w->expr), collect_words, words);
	assert_string_equal(words, "first words.second words.first words.second words.");
	expr_says(AT(w->expr), check_number, (void *)AT(kb->words));
	assert_string_equal(AT(AT(kb->signs)->source), "a test");
	free(kb);
}

static void collect_ground(void *arg, const char *words, enum fact_id fact)
{
	collect(arg, words ? words : fact_name(fact));
}

static void expr__what_holds_is_a_ground_and_nothing_else(void **state)
{
	static const char text[] = SIGNS "either: says(\"first words\", \"second words\")" SOURCE HEADER(
		"when likely r: text.is && !sign.either || sign.either && (error.raised || text.hangs) && known(text.gpus)\n");
	struct pool pool = {0};
	struct casefile *f = calloc(1, sizeof(*f));
	struct err e = {0};
	struct kb *kb = kb_parse(text, strlen(text), &e);
	char words[100] = "";

	(void)state;
	assert_non_null(kb);
	case_init(f, &pool);
	f->hits = &(struct text_hit){.count = 1, .words = "second words"};
	f->n_hits = 1;
	fact_set_flag(f, FACT_error_raised, true);
	fact_set_flag(f, FACT_text_is, true);
	fact_set_place(f, FACT_text_hangs, "log line 2");
	fact_set_number(f, FACT_text_gpus, 4);
	fact_set_place(f, FACT_text_gpus, "log line 3");
	expr_grounds(AT(AT(AT(kb->first)->when)->expr), f, collect_ground, words);
	assert_string_equal(words, "second words.error.raised.text.gpus.");
	assert_string_equal(fact_place(f, FACT_text_gpus), "log line 3");
	assert_null(fact_place(f, FACT_text_hangs));	/* what is not known has no place */
	free(kb);
	pool_release(&pool);
	free(f);
}

static void kb__a_cause_blames_a_line_that_is_known(void **state)
{
	struct err e = {0};
	struct kb *kb;

	(void)state;
	refused(HEADER("blames: the-user\n"), "kb/causes/a.md line 4", "unknown line to blame");
	refused(HEADER("blames:\n"), "kb/causes/a.md line 4", "unknown line to blame");
	kb = kb_parse(HEADER("blames: growth\n"), strlen(HEADER("blames: growth\n")), &e);
	assert_int_equal(AT(kb->first)->blames, BLAMED_growth);
	free(kb);
	kb = kb_parse(HEADER(""), strlen(HEADER("")), &e);
	assert_int_equal(AT(kb->first)->blames, -1);	/* the line that failed */
	free(kb);
}

static void kb__a_rule_names_its_cuda_codes(void **state)
{
	(void)state;
	refused(HEADER("when likely r: error.code == 700\n"), "kb/causes/a.md line 5", "needs its name");
	refused(HEADER("when likely r: 35 != driver.init\n"), "kb/causes/a.md line", "needs its name");
	refused(HEADER("when likely r: error.code in (cuda.assert, 700)\n"), "kb/causes/a.md line", "needs its name");
	refused(HEADER("when likely r: error.code >= 900\n"), "kb/causes/a.md line", "needs its name");
	refused(BODY("## Why\n- [error.code == 720] a\n"), "kb/causes/a.md line", "needs its name");
	refused(HEADER("when likely r: error.code == cuda.no_such\n"), "kb/causes/a.md line", "no such code");
	refused(HEADER("when likely r: error.code in cuda_set.no_such\n"), "kb/causes/a.md line", "no such set");
	accepted(HEADER("when likely r: error.code == cuda.assert || error.code in cuda_set.illegal_access\n"));
	accepted(HEADER("when likely r: error.code == 0 && xid.number == 79\n"));
}

static void kb__a_rule_names_the_numbers_it_compares_with(void **state)
{
	(void)state;
	refused(HEADER("when likely r: oom.free > 134217728\n"), "kb/causes/a.md line 5", "needs its name and reason");
	refused(HEADER("when likely r: oom.free > oom.total * 0.7\n"), "kb/causes/a.md line",
		"needs its name and reason");
	refused(HEADER("when likely r: launch.negative < -2\n"), "kb/causes/a.md line", "needs its name and reason");
	refused(BODY("## Why\n- [oom.free >= oom.total / 10] a\n"), "kb/causes/a.md line", "needs its name and reason");
	refused(HEADER("when likely r: oom.free > threshold.no_such\n"), "kb/causes/a.md line", "no such number");
	accepted(HEADER(
		"when likely r: oom.free > oom.total / threshold.notable_part && gpu.count > 1 && xid.number == 79\n"));
	accepted(BODY("## Why\n- {text.driver.cuda / 1000}\n"));	/* a sentence may convert units */
}

#define CAUSE(id, lines) "%%% " id "\n---\nid: " id "\ntitle: t\n" lines "---\ntext\n"
#define HOLDS "when likely r: launch.is\n"

/* The causes that match, in order, with the rules that matched: "b/r a/s". For a text, their certainties follow, and
 * '=' where nothing tells them apart: "b/r:likely=". */
static void expect_matches(const char *text, bool of_text, const char *expected)
{
	static const char *const words[] = {"possible", "likely", "certain"};
	struct pool pool = {0};
	struct err e = {0};
	struct kb *kb = kb_parse(text, strlen(text), &e);
	struct casefile f;
	struct matches m;
	char got[200] = "";

	if (!kb)
		fail_msg("%s", e.msg);
	case_init(&f, &pool);
	fact_set_flag(&f, FACT_launch_is, true);
	fact_set_flag(&f, FACT_oom_is, false);
	fact_set_flag(&f, FACT_text_is, of_text);
	rules_match(&m, kb, &f, &pool);
	for (size_t i = 0; i < m.n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s/%s%s%s%s", i ? " " : "",
			 AT(m.list[i].cause->id), AT(m.list[i].when->id), of_text ? ":" : "",
			 of_text ? words[m.list[i].sure] : "", m.list[i].tied ? "=" : "");
	assert_string_equal(got, expected);
	pool_release(&pool);
	free(kb);
}

static void expect_order(const char *text, const char *expected)
{
	expect_matches(text, false, expected);
}

static void order__the_surer_one_leads_then_what_is_over_then_the_id(void **state)
{
	(void)state;
	expect_order(CAUSE("b", HOLDS) CAUSE("a", HOLDS), "a/r b/r");
	expect_order(CAUSE("b", HOLDS "over: a\n") CAUSE("a", HOLDS), "b/r a/r");
	expect_order(CAUSE("b", HOLDS "over: a\n") CAUSE("a", "when certain r: launch.is\n"), "a/r b/r");
	expect_order(CAUSE("c", HOLDS "over: a\n") CAUSE("a", HOLDS) CAUSE("b", HOLDS), "b/r c/r a/r");
}

static void order__goes_through_causes_that_do_not_fit(void **state)
{
	(void)state;
	expect_order(CAUSE("c", HOLDS "over: b\n") CAUSE("b", "when likely r: oom.is\nover: a\n") CAUSE("a", HOLDS),
		     "c/r a/r");
}

static void order__of_equally_sure_rules_the_first_is_told(void **state)
{
	(void)state;
	expect_order(CAUSE("a", "when likely no: oom.is\nwhen likely x: launch.is\nwhen likely y: launch.is\n"), "a/x");
	expect_order(CAUSE("a", "when likely x: launch.is\nwhen certain y: launch.is\n"), "a/y");
}

static void order__a_rule_that_is_named_stands_alone(void **state)
{
	(void)state;
	/* its cause's place does not apply to it */
	expect_order(CAUSE("b", "over: a\nwhen likely r: launch.is\n  over: c\n") CAUSE("a", HOLDS) CAUSE("c", HOLDS),
		     "a/r b/r c/r");
	expect_order(CAUSE("b", HOLDS "over: a\n") CAUSE("a", HOLDS) CAUSE("c", HOLDS "over: a/r\n"), "b/r c/r a/r");
	expect_order(CAUSE("b", HOLDS "over: a\n") CAUSE("a", "when likely other: oom.is\n  over: b\n" HOLDS), "b/r a/r");
	expect_order(CAUSE("b", HOLDS "over: a\n") CAUSE("a", HOLDS "  over: b\n"), "a/r b/r");
}

static void order__a_circle_and_unknown_names_are_refused(void **state)
{
	(void)state;
	refused(CAUSE("a", "over: b\n") CAUSE("b", "over: a\n"), "kb/causes/b.md line 4",
		"has a cycle: 'b' is over 'a'");
	refused(CAUSE("a", "over: b\n") CAUSE("b", "over: c\n") CAUSE("c", "over: a\n"), "kb/causes/c.md line 4",
		"has a cycle");
	refused(CAUSE("a", HOLDS "  over: b\n") CAUSE("b", "over: a/r\n"), "kb/causes/b.md line 4", "has a cycle");
	refused(CAUSE("a", "over: a\n"), "kb/causes/a.md line 4", "has a cycle");
	refused(CAUSE("a", "over: b\n"), "kb/causes/a.md line 4 names 'b'", "no such cause in kb/causes/b.md");
	refused(CAUSE("a", HOLDS "over: a/s\n"), "kb/causes/a.md line 5 names 'a/s'", "no such rule in kb/causes/a.md");
	refused(CAUSE("a", "explains: b\n"), "kb/causes/a.md line 4 names 'b'", "no such cause in kb/causes/b.md");
	refused(CAUSE("a", "over: ,\n"), "kb/causes/a.md line 4", "a name is missing");
	refused(CAUSE("a", "rank: 7\n"), "kb/causes/a.md line 4", "unknown key");
	refused(CAUSE("a", "when likely r 7: launch.is\n"), "kb/causes/a.md line 4", "an id of its own");
}

static void order__what_is_explained_away_is_not_told(void **state)
{
	(void)state;
	expect_order(CAUSE("b", HOLDS "explains: a\n") CAUSE("a", HOLDS), "b/r");
	expect_order(CAUSE("b", HOLDS "explains: a\n") CAUSE("a", "when certain r: launch.is\n"), "a/r b/r");
	expect_order(CAUSE("b", "when possible r: launch.is\nexplains: a\n") CAUSE("a", "when possible r: launch.is\n"),
		     "a/r b/r");
}

#define IS "when possible r: launch.is\n"
#define FOR "for f: launch.is\n  because: f\n"
#define AGAINST "against g: launch.is\n  because: g\n"

static void weighing__evidence_moves_a_cause_by_one_step(void **state)
{
	(void)state;
	expect_matches(CAUSE("a", IS FOR), true, "a/r:likely");
	expect_matches(CAUSE("a", HOLDS FOR), true, "a/r:likely");	/* only a rule says certain */
	expect_matches(CAUSE("a", HOLDS AGAINST), true, "a/r:possible");
	expect_matches(CAUSE("a", "when certain r: launch.is\n" AGAINST), true, "a/r:likely");
	expect_matches(CAUSE("a", IS AGAINST), true, "a/r:possible");
	expect_matches(CAUSE("a", HOLDS FOR AGAINST), true, "a/r:possible");
	expect_matches(CAUSE("a", IS "for f: oom.is\n  because: f\n"), true, "a/r:possible");	/* it does not hold */
	expect_matches(CAUSE("a", FOR), true, "");	/* evidence finds no cause by itself */
}

static void weighing__what_is_excluded_is_no_candidate(void **state)
{
	(void)state;
	expect_matches(CAUSE("a", "when certain r: launch.is\nexcluded x: launch.is\n  because: x\n") CAUSE("b", IS),
		       true, "b/r:possible");
}

static void weighing__evidence_counts_before_the_order(void **state)
{
	(void)state;
	expect_matches(CAUSE("a", HOLDS "over: b\n") CAUSE("b", HOLDS FOR), true, "b/r:likely a/r:likely");
	expect_matches(CAUSE("a", HOLDS "over: b\n" AGAINST) CAUSE("b", IS), true, "b/r:possible a/r:possible");
}

static void weighing__a_tie_is_a_step_less_certain(void **state)
{
	(void)state;
	expect_matches(CAUSE("a", HOLDS) CAUSE("b", HOLDS), true, "a/r:possible= b/r:possible=");
	expect_matches(CAUSE("a", "when certain r: launch.is\n") CAUSE("b", "when certain r: launch.is\n") CAUSE("c", IS),
		       true, "a/r:likely= b/r:likely= c/r:possible");
	expect_matches(CAUSE("a", HOLDS) CAUSE("b", HOLDS "over: a\n"), true, "b/r:likely a/r:likely");
}

static void weighing__mistakes_in_evidence_are_found(void **state)
{
	(void)state;
	refused(HEADER("for: launch.is\n  because: f\n"), "kb/causes/a.md line", "an id of its own");
	refused(HEADER("for f: launch.is\n"), "kb/causes/a.md line", "evidence needs its reason");
	refused(HEADER("for r: launch.is\n  because: f\n" HOLDS), "kb/causes/a.md line", "the same id");
	refused(HEADER("against f: launch.is\n  because: f\n  over: a\n"), "kb/causes/a.md line",
		"no place in the order");
	refused(HEADER("against f: error.code\n  because: f\n"), "kb/causes/a.md line", "must be true or false");
}

static void kb__a_small_file_is_read_whole(void **state)
{
	static const char text[] =
		"\n%%% a-b\n<!-- licence -->\n---\nid: a-b\ntitle: A title\nover: x\nexplains: x, y\nprogram: p.py\n"
		"when certain broken-launch: launch.is\n  && error.code == cuda.invalid_value\n  because: it is {error.code}\n"
		"when possible always: true\n---\nFirst.\n\nSecond.\n\n## Why\n- one\n  and more\n- [launch.is] "
		"two\n"
		"## Fix\n- do\n    this\n    that\n## Not to be confused with\nOther.\n"
		"## Program\n    def f():\n        g()\n\n    f()\n" CAUSE("x", "") CAUSE("y", "");
	struct kb *kb = kb_parse(text, strlen(text), NULL);
	const struct cause *c;
	const struct when *w;
	const struct over *o;

	(void)state;
	assert_non_null(kb);
	c = kb_find(kb, "a-b");
	assert_non_null(c);
	assert_string_equal(AT(c->title), "A title");
	assert_string_equal(AT(AT(c->place.over)->name), "x");
	o = AT(c->explains);
	assert_string_equal(AT(o->name), "x");
	assert_string_equal(AT(AT(o->next)->name), "y");
	w = AT(c->when);
	assert_string_equal(AT(w->id), "broken-launch");
	assert_string_equal(AT(w->text), "launch.is && error.code == cuda.invalid_value");
	assert_int_equal(AT(w->next)->sure, KB_POSSIBLE);
	assert_string_equal(AT(c->definition), "First.\n\nSecond.");
	assert_string_equal(AT(AT(AT(c->why)->text)->text), "one and more");
	assert_string_equal(AT(AT(AT(c->why)->next)->guard_text), "launch.is");
	assert_string_equal(AT(AT(AT(c->fix)->command)->text), "this\nthat");
	assert_string_equal(AT(c->confused), "Other.");
	assert_string_equal(AT(c->program), "p.py");
	assert_string_equal(AT(c->program_text), "def f():\n    g()\n\nf()");
	assert_null(kb_find(kb, "z"));
	free(kb);
}

static void grid_limit__names_dimension_value_limit_and_pieces(void **state)
{
	uint32_t s;
	struct tb b;
	json_t *j;

	(void)state;
	tb_init(&b);
	s = tb_stack(&b, TORCH "nn/functional.py:500:_fractional_max_pool2d", TORCH "_jit_internal.py:628:fn",
		     USER, NULL);
	tb_fail_launch(
		&b, 1, s,
		tb_function(&b, "_ZN2at6native12_GLOBAL__N_136fractional_max_pool2d_out_cuda_frameIfEEvPf"),
		G(1, 3, 70000), G(128, 1, 1), 0);
	tb_fail(&b, CW_SRC_TORCH_CUDA, 1, s);
	tb_fail_text(&b, CW_SRC_PYTHON, s, "AcceleratorError",
		     "CUDA error: invalid argument\nCUDA kernel errors...");
	j = judge(&b, 1);
	assert_string_equal(field(j, "cause"), "launch-config-grid-limit");
	assert_string_equal(field(j, "certainty"), "certain");
	assert_true(mentions(j, "why", "grid z is 70,000; NVIDIA H200 allows 65,535"));
	assert_true(mentions(j, "fix", "fractional_max_pool2d"));
	assert_true(mentions(j, "fix", "into 2 pieces"));
	assert_true(mentions(j, "fix", "x.chunk(2)"));
	json_decref(j);
}

static void grid_limit__the_limit_itself_is_allowed(void **state)
{
	struct tb b;

	(void)state;
	launch(&b, 1, G(2147483647, 65535, 65535), G(32, 1, 1), 0);
	expect_not(&b, "launch-config-grid-limit");
	launch(&b, 1, G(1, 65536, 1), G(32, 1, 1), 0);
	expect(&b, "launch-config-grid-limit", "certain");
}

static void grid_limit__without_the_devices_limits_it_is_likely(void **state)
{
	struct tb b;

	(void)state;
	launch(&b, 1, G(1, 70000, 1), G(32, 1, 1), 0);
	memset(&b.h->device[0], 0, sizeof(b.h->device[0]));
	expect(&b, "launch-config-grid-limit", "likely");
}

static void grid_limit__is_read_from_the_drivers_log(void **state)
{
	struct cw_failure *f;
	struct tb b;

	(void)state;
	tb_init(&b);
	f = tb_fail(&b, CW_SRC_DRIVER, 9, tb_stack(&b, USER, NULL));
	snprintf(f->text, sizeof(f->text), "Grid Dimension Y of 70000 exceeds maximum value of 65535");
	expect(&b, "launch-config-grid-limit", "certain");
}

static void launch__unknown_dimensions_are_could_not_check(void **state)
{
	struct tb b;
	json_t *j;

	(void)state;
	tb_init(&b);
	tb_fail(&b, CW_SRC_TORCH_CUDA, 9, tb_stack(&b, USER, NULL));
	j = judge(&b, 1);
	assert_string_equal(field(j, "cause"), "unknown");
	assert_true(mentions(j, "unchecked", "launch-config-grid-limit"));
	assert_false(mentions(j, "unchecked", "oom-capacity"));
	json_decref(j);
}

static void block_limit__threads_in_all_and_each_dimension(void **state)
{
	struct tb b;

	(void)state;
	launch(&b, 1, G(1, 1, 1), G(2048, 1, 1), 0);
	expect(&b, "launch-config-block-limit", "certain");
	launch(&b, 1, G(1, 1, 1), G(1, 1, 65), 0);
	expect(&b, "launch-config-block-limit", "certain");
	launch(&b, 1, G(1, 1, 1), G(64, 32, 1), 0);
	expect(&b, "launch-config-block-limit", "certain");
	launch(&b, 1, G(1, 1, 1), G(1024, 1, 1), 0);
	expect_not(&b, "launch-config-block-limit");
	launch(&b, 1, G(1, 1, 1), G(16, 1, 64), 0);
	expect_not(&b, "launch-config-block-limit");
}

static void shared__above_what_the_kernel_may_ask(void **state)
{
	struct cw_failure *f;
	struct tb b;
	json_t *j;

	(void)state;
	launch(&b, 1, G(1, 1, 1), G(32, 1, 1), 100000);
	j = judge(&b, 1);
	assert_string_equal(field(j, "cause"), "launch-config-shared-memory-limit");
	assert_string_equal(field(j, "certainty"), "certain");
	assert_true(mentions(j, "fix", "cudaFuncAttributeMaxDynamicSharedMemorySize, 100000"));
	json_decref(j);
	f = launch(&b, 1, G(1, 1, 1), G(32, 1, 1), 100000);
	f->func_attr[CW_FUNC_max_dynamic_shared] = 100000;
	expect_not(&b, "launch-config-shared-memory-limit");
	f = launch(&b, 1, G(1, 1, 1), G(32, 1, 1), 48000);
	f->func_attr[CW_FUNC_static_shared] = 4096;
	expect(&b, "launch-config-shared-memory-limit", "certain");
	f = launch(&b, 1, G(1, 1, 1), G(32, 1, 1), 100000);
	memset(f->func_attr, 0xff, sizeof(f->func_attr));
	expect(&b, "launch-config-shared-memory-limit", "likely");
	launch(&b, 1, G(1, 1, 1), G(32, 1, 1), 49152);
	expect_not(&b, "launch-config-shared-memory-limit");
}

static void shared__an_opt_in_above_the_devices_limit(void **state)
{
	struct cw_failure *f;
	struct tb b;

	(void)state;
	tb_init(&b);
	f = tb_fail(&b, CW_SRC_DRIVER, 1, tb_stack(&b, USER, NULL));
	f->api = 102;
	f->n_args = 3;
	f->arg[1] = 8;
	f->arg[2] = 300000;
	f->func = tb_function(&b, "_Z4fillPfl");
	expect(&b, "launch-config-shared-memory-limit", "certain");
	tb_init(&b);
	f = tb_fail(&b, CW_SRC_DRIVER, 1, tb_stack(&b, USER, NULL));
	f->api = 102;
	f->n_args = 3;
	f->arg[1] = 8;
	f->arg[2] = 100000;
	expect_not(&b, "launch-config-shared-memory-limit");
}

static void shared__triton_refuses_before_the_driver(void **state)
{
	struct tb b;

	(void)state;
	tb_init(&b);
	tb_fail_text(&b, CW_SRC_PYTHON, tb_stack(&b, USER, NULL), "OutOfResources",
		     "out of resource: shared memory, Required: 262144, Hardware limit: 232448. Reducing "
		     "block sizes may help.");
	expect(&b, "launch-config-shared-memory-limit", "certain");
	/* its arguments are numbers, not a text */
	tb_init(&b);
	tb_fail_text(&b, CW_SRC_PYTHON, tb_stack(&b, USER, NULL), "OutOfResources", "");
	expect(&b, "launch-config-shared-memory-limit", "likely");
	tb_init(&b);
	tb_fail_text(&b, CW_SRC_PYTHON, tb_stack(&b, USER, NULL), "CompilationError", "");
	expect_not(&b, "launch-config-shared-memory-limit");
}

static void launch_bounds__not_explained_by_registers(void **state)
{
	struct cw_failure *f;
	struct tb b;

	(void)state;
	f = launch(&b, 701, G(1, 1, 1), G(512, 1, 1), 0);
	f->func_attr[CW_FUNC_max_threads] = 256;
	expect(&b, "launch-config-launch-bounds", "certain");
	f = launch(&b, 1, G(1, 1, 1), G(512, 1, 1), 0);
	f->func_attr[CW_FUNC_max_threads] = 256;
	f->func_attr[CW_FUNC_registers] = -1;
	expect(&b, "launch-config-launch-bounds", "likely");
	f = launch(&b, 1, G(1, 1, 1), G(257, 1, 1), 0);
	memset(f->func_attr, 0xff, sizeof(f->func_attr));
	snprintf(f->text, sizeof(f->text),
		 "Requested block size of 257 threads exceeds maximum set at compilation of 256");
	expect(&b, "launch-config-launch-bounds", "certain");
	f = launch(&b, 1, G(1, 1, 1), G(256, 1, 1), 0);
	f->func_attr[CW_FUNC_max_threads] = 256;
	expect_not(&b, "launch-config-launch-bounds");
}

static void too_many_resources__by_the_register_arithmetic(void **state)
{
	struct cw_failure *f;
	struct tb b;
	json_t *j;

	(void)state;
	/* 162 registers: 12 warps of 5376 fit in 65536, so 384 threads */
	f = launch(&b, 701, G(1, 1, 1), G(512, 1, 1), 0);
	f->func_attr[CW_FUNC_registers] = 162;
	f->func_attr[CW_FUNC_max_threads] = 384;
	j = judge(&b, 1);
	assert_string_equal(field(j, "cause"), "too-many-resources");
	assert_string_equal(field(j, "certainty"), "certain");
	assert_true(mentions(j, "fix", "at most 384 threads"));
	json_decref(j);
	f = launch(&b, 701, G(1, 1, 1), G(384, 1, 1), 0);
	f->func_attr[CW_FUNC_registers] = 162;
	f->func_attr[CW_FUNC_max_threads] = 384;
	j = judge(&b, 1);
	assert_string_equal(field(j, "certainty"), "possible");
	assert_non_null(strstr(field(j, "title"), "it is not registers"));
	assert_false(mentions(j, "fix", "threads per block"));
	json_decref(j);
	launch(&b, 1, G(1, 1, 1), G(512, 1, 1), 0);
	expect_not(&b, "too-many-resources");
	f = launch(&b, 720, G(100000, 1, 1), G(512, 1, 1), 0);
	f->cooperative = 1;
	expect(&b, "too-many-resources", "certain");
}

static void empty_input__a_dimension_of_zero(void **state)
{
	struct cw_failure *f;
	struct tb b;

	(void)state;
	launch(&b, 1, G(0, 1, 1), G(32, 1, 1), 0);
	expect(&b, "launch-config-empty-input", "certain");
	f = launch(&b, 9, G(0, 1, 1), G(32, 1, 1), 0);
	f->source = CW_SRC_RUNTIME;
	f->api = 0;
	f->func = 0;
	expect(&b, "launch-config-empty-input", "certain");
	launch(&b, 1, G(1, 1, 1), G(32, 1, 1), 0);
	expect_not(&b, "launch-config-empty-input");
}

static void bad_shape__a_negative_number_in_disguise(void **state)
{
	struct cw_failure *f;
	struct tb b;

	(void)state;
	launch(&b, 1, G(4294967295u, 1, 1), G(32, 1, 1), 0);
	expect(&b, "launch-config-bad-shape", "certain");
	launch(&b, 1, G(3000000000u, 1, 1), G(32, 1, 1), 0);
	expect(&b, "launch-config-bad-shape", "likely");
	launch(&b, 1, G(1, 70000, 1), G(32, 1, 1), 0);
	expect_not(&b, "launch-config-bad-shape");
	f = launch(&b, 1, G(5, 1, 1), G(32, 1, 1), 0);
	f->cluster[0] = 2;
	f->cluster[1] = f->cluster[2] = 1;
	expect(&b, "launch-config-bad-shape", "certain");
	f = launch(&b, 1, G(6, 1, 1), G(32, 1, 1), 0);
	f->cluster[0] = 2;
	f->cluster[1] = f->cluster[2] = 1;
	expect_not(&b, "launch-config-bad-shape");
}

static struct cw_failure *set_device(struct tb *b, int ordinal)
{
	struct cw_failure *f;

	tb_init(b);
	f = tb_fail(b, CW_SRC_RUNTIME, 101, tb_stack(b, TORCH "cuda/__init__.py:1:set_device", USER, NULL));
	snprintf(f->what, sizeof(f->what), "cudaSetDevice");
	f->n_args = 1;
	f->arg[0] = (uint64_t)ordinal;
	return f;
}

static void ordinal__asked_for_and_visible(void **state)
{
	struct cw_failure *f;
	struct tb b;
	json_t *j;

	(void)state;
	set_device(&b, 1);
	j = judge(&b, 1);
	assert_string_equal(field(j, "cause"), "device-ordinal-out-of-range");
	assert_string_equal(field(j, "certainty"), "certain");
	assert_true(mentions(j, "why", "asked for device 1"));
	assert_true(mentions(j, "why", "one device is visible"));
	json_decref(j);
	tb_init(&b);
	f = tb_fail(&b, CW_SRC_DRIVER, 101, tb_stack(&b, USER, NULL));
	f->api = 3;
	snprintf(f->text, sizeof(f->text),
		 "Invalid device number 7 provided, must be in the range of 0 to 0");
	expect(&b, "device-ordinal-out-of-range", "certain");
	tb_init(&b);
	tb_fail_text(&b, CW_SRC_PYTHON, tb_stack(&b, USER, NULL), "AcceleratorError",
		     "CUDA error: invalid device ordinal");
	expect(&b, "device-ordinal-out-of-range", "likely");
	set_device(&b, 0);
	expect_not(&b, "device-ordinal-out-of-range");
}

static void visible_wrong__hides_all_or_names_what_is_not_there(void **state)
{
	struct cw_failure *f;
	struct tb b;
	json_t *j;

	(void)state;
	tb_init(&b);
	b.h->device_count = 0;
	b.h->init_result = 100;
	b.h->visible_devices_at_init[0] = '\0';
	f = tb_fail(&b, CW_SRC_DRIVER, 100,
		    tb_stack(&b, TORCH "cuda/__init__.py:1:is_available", USER, NULL));
	f->api = 1;
	f->visible_devices[0] = '\0';
	j = judge(&b, 0);
	assert_string_equal(field(j, "cause"), "none");
	assert_int_equal(json_array_size(json_object_get(j, "notes")), 0);	/* all hidden, and it needs none */
	json_decref(j);

	tb_init(&b);
	b.h->device_count = 0;
	b.h->init_result = 100;
	b.h->visible_devices_at_init[0] = '\0';
	f = tb_fail(&b, CW_SRC_DRIVER, 100, tb_stack(&b, USER, NULL));
	f->api = 1;
	f->visible_devices[0] = '\0';
	expect(&b, "visible-devices-wrong", "certain");

	tb_init(&b);
	b.h->init_result = 100;
	f = tb_fail(&b, CW_SRC_DRIVER, 100, 0);
	f->api = 1;
	snprintf(b.h->visible_devices_at_init, 8, "7");
	snprintf(f->visible_devices, 8, "7");
	expect(&b, "visible-devices-wrong", "likely");

	tb_init(&b);
	b.h->init_result = 100;
	tb_fail(&b, CW_SRC_DRIVER, 100, 0)->api = 1;
	expect_not(&b, "visible-devices-wrong");

	f = set_device(&b, 1);
	snprintf(b.h->visible_devices_at_init, 8, "0,9");
	snprintf(f->visible_devices, 8, "0,9");
	expect(&b, "visible-devices-wrong", "certain");
	f = set_device(&b, 2);
	snprintf(b.h->visible_devices_at_init, 8, "0");
	snprintf(f->visible_devices, 8, "0");
	expect_not(&b, "visible-devices-wrong");
}

static void visible_late__the_value_changed_after_the_start(void **state)
{
	struct cw_failure *f;
	struct tb b;

	(void)state;
	f = set_device(&b, 1);
	snprintf(b.h->visible_devices_at_init, 8, "0");
	snprintf(f->visible_devices, 8, "0,1");
	expect(&b, "visible-devices-set-late", "certain");
	tb_init(&b);
	b.h->visible_devices_at_init[0] = '\0';
	f = tb_fail_text(&b, CW_SRC_TORCH_CHECK, tb_stack(&b, USER, NULL), "f", "No CUDA GPUs are available");
	snprintf(f->visible_devices, 8, "0");
	expect(&b, "visible-devices-set-late", "likely");
	f = set_device(&b, 3);
	snprintf(f->visible_devices, 8, "0,1");
	expect(&b, "device-ordinal-out-of-range", "certain");
	f = set_device(&b, 1);
	snprintf(b.h->visible_devices_at_init, 8, "0");
	snprintf(f->visible_devices, 8, "0");
	expect_not(&b, "visible-devices-set-late");
}

static void arch__whose_kernel_it_was(void **state)
{
	struct cw_failure *f;
	struct tb b;
	uint32_t s;

	(void)state;
	tb_init(&b);
	s = tb_stack(&b, USER, NULL);
	f = tb_fail_launch(&b, 209, s,
			   tb_function(&b, "_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi"),
			   G(1, 1, 1), G(32, 1, 1), 0);
	memset(f->func_attr, 0xff, sizeof(f->func_attr));
	expect(&b, "arch-not-in-wheel", "certain");

	tb_init(&b);
	s = tb_stack(&b, USER, NULL);
	tb_fail(&b, CW_SRC_DRIVER, 209, s)->api = 94;
	f = tb_fail(&b, CW_SRC_TORCH_CUDA, 209, s);
	snprintf(f->file, sizeof(f->file), "/pytorch/aten/src/ATen/native/cuda/Loops.cuh");
	expect(&b, "arch-not-in-wheel", "certain");

	tb_init(&b);
	s = tb_stack(&b, USER, NULL);
	tb_fail(&b, CW_SRC_DRIVER, 209, s)->api = 94;
	f = tb_fail(&b, CW_SRC_TORCH_CUDA, 209, s);
	snprintf(f->file, sizeof(f->file), "/home/me/ext/kernel.cu");
	expect(&b, "extension-arch-missing", "certain");

	tb_init(&b);
	tb_plain_program(&b);
	tb_fail(&b, CW_SRC_DRIVER, 209, 0)->api = 91;
	expect(&b, "extension-arch-missing", "certain");

	tb_init(&b);
	tb_fail(&b, CW_SRC_DRIVER, 209,
		tb_stack(&b, "/venv/lib/python3.12/site-packages/cupy/_core/x.py:3:compile", USER, NULL))
		->api = 91;
	expect(&b, "extension-arch-missing", "certain");

	/* seen on the H200: an extension with its own runtime; the log names the kernel */
	tb_init(&b);
	f = tb_fail(&b, CW_SRC_DRIVER, 209, tb_stack(&b, USER, NULL));
	f->api = 97;
	snprintf(f->text, sizeof(f->text),
		 "Kernel (_Z5touchv) cannot be found in library due to compilation error, to get more "
		 "information when using CUDA Driver APIs use the CU_JIT_ERROR_LOG_BUFFER");
	expect(&b, "extension-arch-missing", "certain");

	/* and a module loaded by hand in a process with PyTorch */
	tb_init(&b);
	tb_fail(&b, CW_SRC_DRIVER, 209,
		tb_stack(&b, TORCH "cuda/_utils.py:499:_cuda_load_module", USER, NULL))
		->api = 91;
	expect(&b, "extension-arch-missing", "certain");

	launch(&b, 1, G(1, 1, 1), G(32, 1, 1), 0);
	expect_not(&b, "extension-arch-missing");
	launch(&b, 209, G(1, 1, 1), G(32, 1, 1), 0);
	expect_not(&b, "arch-not-in-wheel");
}

static void arch__when_nobody_can_say_whose_both_are_possible(void **state)
{
	struct tb b;
	json_t *j;

	(void)state;
	tb_init(&b);
	tb_fail(&b, CW_SRC_DRIVER, 209, tb_stack(&b, USER, NULL))->api = 94;
	j = judge(&b, 1);
	assert_string_equal(field(j, "certainty"), "possible");
	assert_int_equal(json_array_size(json_object_get(j, "candidates")), 2);
	json_decref(j);
}

static void ptx__newer_than_the_driver(void **state)
{
	struct tb b;

	(void)state;
	tb_init(&b);
	tb_fail(&b, CW_SRC_DRIVER, 222, tb_stack(&b, USER, NULL))->api = 92;
	expect(&b, "ptx-newer-than-driver", "certain");
	tb_init(&b);
	tb_fail(&b, CW_SRC_DRIVER, 218, tb_stack(&b, USER, NULL))->api = 92;
	expect_not(&b, "ptx-newer-than-driver");
}

static void capture__the_first_illegal_call_and_where_it_began(void **state)
{
	struct cw_failure *f;
	struct tb b;
	uint32_t begin;
	json_t *j;

	(void)state;
	tb_init(&b);
	begin = tb_stack(&b, TORCH "cuda/graphs.py:1:__enter__", "train.py:20:main", NULL);
	f = tb_fail(&b, CW_SRC_DRIVER, 900, tb_stack(&b, "train.py:25:main", NULL));
	f->api = 32;
	f->capturing = 1;
	f->capture_stack = begin;
	tb_fail(&b, CW_SRC_TORCH_CUDA, 900, f->stack);
	f = tb_fail(&b, CW_SRC_DRIVER, 901,
		    tb_stack(&b, TORCH "cuda/graphs.py:9:__exit__", "train.py:24:main", NULL));
	f->api = 73;
	tb_fail_text(&b, CW_SRC_PYTHON, f->stack, "AcceleratorError",
		     "CUDA error: operation failed due to a previous error during capture");
	j = judge(&b, 1);
	assert_string_equal(field(j, "cause"), "graph-capture-illegal-op");
	assert_string_equal(field(j, "certainty"), "certain");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "where"), "line")), 25);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "capture"), "line")), 20);
	assert_int_equal(json_array_size(json_object_get(j, "notes")), 0);
	json_decref(j);
	f = launch(&b, 1, G(1, 70000, 1), G(32, 1, 1), 0);
	f->capturing = 1;
	expect_not(&b, "graph-capture-illegal-op");
}

static void fork__by_pytorch_by_code_and_by_words(void **state)
{
	struct tb b;
	uint32_t s;

	(void)state;
	tb_init(&b);
	b.h->forked = 1;
	tb_fail(&b, CW_SRC_FORK, 3, tb_stack(&b, TORCH "cuda/__init__.py:1:_lazy_init", USER, NULL));
	expect(&b, "fork-after-init", "certain");
	tb_init(&b);
	b.h->forked = 1;
	tb_plain_program(&b);
	tb_fail(&b, CW_SRC_DRIVER, 3, 0)->api = 120;
	expect(&b, "fork-after-init", "certain");
	tb_init(&b);
	s = tb_stack(&b, TORCH "cuda/__init__.py:1:_lazy_init", USER, NULL);
	tb_fail_text(&b, CW_SRC_PYTHON, s, "RuntimeError",
		     "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, ...");
	expect(&b, "fork-after-init", "certain");
	tb_init(&b);
	tb_plain_program(&b);
	tb_fail(&b, CW_SRC_DRIVER, 3, 0)->api = 120;
	expect_not(&b, "fork-after-init");
}

static struct cw_failure *oom(struct tb *b, uint64_t request, uint64_t allocated, uint64_t reserved,
			      uint64_t left)
{
	uint64_t total;
	struct cw_failure *f;
	uint32_t s;

	tb_init(b);
	total = b->h->device[0].total_bytes;
	s = tb_stack(b, USER, NULL);
	f = tb_fail(b, CW_SRC_DRIVER, 2, s);
	f->api = 120;
	f->request_bytes = request;
	f = tb_fail(b, CW_SRC_TORCH_OOM, 2, s);
	f->request_bytes = request;
	f->torch_allocated = allocated;
	f->torch_reserved = reserved;
	f->live_device_bytes = reserved;
	f->memory_known = 1;
	f->free_bytes = left;
	f->total_bytes = total;
	tb_fail_text(b, CW_SRC_PYTHON, s, "OutOfMemoryError", "CUDA out of memory. Tried to allocate ...");
	return f;
}

static void oom__one_request_larger_than_the_card(void **state)
{
	struct tb b;
	json_t *j;

	(void)state;
	oom(&b, 4096 * GIB, 0, 0, 139 * GIB);
	j = judge(&b, 1);
	assert_string_equal(field(j, "cause"), "oom-request-too-large");
	assert_string_equal(field(j, "certainty"), "certain");
	assert_true(mentions(j, "why", "4.0 TiB"));
	assert_true(json_is_object(json_object_get(j, "memory")));
	json_decref(j);
	tb_init(&b);
	tb_fail_text(&b, CW_SRC_TORCH_CHECK, tb_stack(&b, USER, NULL), "malloc",
		     "CUDA out of memory. Tried to allocate more than 1EB memory.");
	tb_fail_text(&b, CW_SRC_PYTHON, tb_stack(&b, USER, NULL), "OutOfMemoryError",
		     "CUDA out of memory. Tried to allocate more than 1EB memory.");
	expect(&b, "oom-request-too-large", "certain");
	oom(&b, 139 * GIB, 0, 0, 138 * GIB);
	expect_not(&b, "oom-request-too-large");
}

/* Recorded on an H200 with PyTorch 2.11: no driver call fails, 139 GiB are free, 2 GiB were requested. */
static void oom__a_limit_of_the_process_is_not_a_full_card(void **state)
{
	struct tb b;
	struct cw_failure *f;
	uint32_t s;

	(void)state;
	for (int named = 0; named < 2; named++) {
		tb_init(&b);
		s = tb_stack(&b, USER, NULL);
		f = tb_fail(&b, CW_SRC_TORCH_OOM, 2, s);
		f->request_bytes = 2 * GIB;
		f->memory_known = 1;
		f->free_bytes = 139 * GIB;
		f->total_bytes = 140 * GIB;
		f->torch_reserved = f->torch_allocated = 20 << 20;
		tb_fail_text(&b, CW_SRC_PYTHON, s, "OutOfMemoryError",
			     named ? "CUDA out of memory. Tried to allocate 2.00 GiB. 1.40 GiB allowed; Of the allocated memory"
				   : "CUDA out of memory. Tried to allocate 2.00 GiB.");
		expect(&b, "oom-memory-fraction", named ? "certain" : "likely");
	}
	oom(&b, 10 * GIB, 135 * GIB, 136 * GIB, 3 * GIB);
	expect_not(&b, "oom-memory-fraction");
}

static void oom__live_tensors_fill_the_card(void **state)
{
	struct tb b;
	json_t *j;

	(void)state;
	oom(&b, 10 * GIB, 135 * GIB, 136 * GIB, 3 * GIB);
	expect(&b, "oom-capacity", "certain");
	oom(&b, 4096 * GIB, 0, 0, 139 * GIB);
	expect_not(&b, "oom-capacity");
	/* what is reserved but in no tensor would have been enough */
	oom(&b, 10 * GIB, 80 * GIB, 135 * GIB, 4 * GIB);
	j = judge(&b, 1);
	assert_string_equal(field(j, "cause"), "oom-fragmentation");
	assert_string_equal(field(j, "certainty"), "likely");
	assert_true(mentions(j, "candidates", "oom-capacity"));
	assert_true(mentions(j, "why", "55.0 GiB in PyTorch's cache"));
	json_decref(j);
	/* far more is in use than this process has */
	oom(&b, 10 * GIB, 20 * GIB, 20 * GIB, 1 * GIB);
	j = judge(&b, 1);
	assert_string_equal(field(j, "cause"), "oom-other-process");
	assert_string_equal(field(j, "certainty"), "likely");
	assert_false(mentions(j, "candidates", "oom-fragmentation"));
	json_decref(j);
}

/* PyTorch's allocator tries, frees its cache and tries again: only the last attempt is why the program ended. */
static void oom__attempts_that_were_survived_do_not_lend_their_line(void **state)
{
	struct cw_failure *f;
	uint32_t at, elsewhere;
	struct tb b;
	json_t *j;

	(void)state;
	tb_init(&b);
	at = tb_stack(&b, USER, NULL);
	elsewhere = tb_stack(&b, "/home/user/data.py:13:batches", NULL);
	for (uint64_t i = 1; i <= 3; i++) {
		f = tb_fail(&b, CW_SRC_DRIVER, 2, i == 2 ? elsewhere : at);
		f->api = 120;
		f->request_bytes = i * GIB;
	}
	f = tb_fail(&b, CW_SRC_TORCH_OOM, 2, at);
	f->request_bytes = 3 * GIB;
	tb_fail_text(&b, CW_SRC_PYTHON, at, "OutOfMemoryError", "CUDA out of memory. Tried to allocate ...");
	j = judge(&b, 1);
	assert_true(mentions(j, "where", "train.py"));
	assert_false(mentions(j, "where", "data.py"));
	json_decref(j);
}

static void expect_message(const char *cause, const char *text)
{
	struct tb b;
	uint32_t s;

	tb_init(&b);
	s = tb_stack(&b, USER, NULL);
	tb_fail_text(&b, CW_SRC_TORCH_CHECK, s, "meta", text);
	tb_fail_text(&b, CW_SRC_PYTHON, s, "RuntimeError", text);
	expect(&b, cause,
	       !strcmp(cause, "none")	       ? "certain"
	       : strstr(text, "size mismatch") ? "likely"
					       : "certain");
	/* an older recorder, or an exception raised in Python */
	tb_init(&b);
	s = tb_stack(&b, USER, NULL);
	tb_fail_text(&b, CW_SRC_PYTHON, s, "RuntimeError", text);
	expect(&b, cause,
	       !strcmp(cause, "none")	       ? "certain"
	       : strstr(text, "size mismatch") ? "likely"
					       : "certain");
}

static void messages__device(void **state)
{
	(void)state;
	expect_message("tensor-device-mismatch", "Expected all tensors to be on the same device, but found "
						 "at least two devices, cuda:0 and cpu!");
	expect_message("tensor-device-mismatch",
		       "Expected all tensors to be on the same device, but got mat2 is on cpu, different "
		       "from other tensors on cuda:0 (when checking argument in method wrapper_CUDA_mm)");
	expect_message("tensor-device-mismatch",
		       "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be "
		       "the same or input should be a MKLDNN tensor and weight is a dense tensor");
	expect_message(
		"tensor-device-mismatch",
		"Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same");
	expect_message("tensor-device-mismatch",
		       "indices should be either on cpu or on the same device as the indexed tensor (cpu)");
}

static void messages__shape(void **state)
{
	struct tb b;
	json_t *j;

	(void)state;
	expect_message("shape-mismatch", "mat1 and mat2 shapes cannot be multiplied (10x10 and 5x10)");
	expect_message(
		"shape-mismatch",
		"The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1");
	expect_message("shape-mismatch", "size mismatch, got input (10), mat (10x10), vec (5)");
	expect_message("shape-mismatch", "shape '[3, 4]' is invalid for input of size 10");
	expect_message("shape-mismatch", "Given groups=1, weight of size [8, 3, 3, 3], expected input[1, 4, "
					 "8, 8] to have 3 channels, but got 4 channels instead");
	tb_init(&b);
	tb_fail_text(&b, CW_SRC_PYTHON, tb_stack(&b, USER, NULL), "RuntimeError",
		     "mat1 and mat2 shapes cannot be multiplied (10x10 and 5x10)");
	j = judge(&b, 1);
	assert_true(mentions(j, "why", "10 is not 5"));
	json_decref(j);
}

static void messages__dtype(void **state)
{
	(void)state;
	expect_message("dtype-mismatch", "Input type (float) and bias type (c10::Half) should be the same");
	expect_message("dtype-mismatch", "expected scalar type Long but found Float");
	expect_message("dtype-mismatch",
		       "expected m1 and m2 to have the same dtype, but got: float != double");
	expect_message("dtype-mismatch", "mat1 and mat2 must have the same dtype, but got Float and Half");
	expect_message(
		"dtype-mismatch",
		"Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, "
		"Int; but got torch.cuda.FloatTensor instead (while checking arguments for embedding)");
	expect_message("dtype-mismatch", "Input type (torch.cuda.FloatTensor) and weight type "
					 "(torch.cuda.HalfTensor) should be the same");
}

static void messages__others_are_none_of_ours(void **state)
{
	(void)state;
	expect_message("none", "grad can be implicitly created only for scalar outputs");
	expect_message("none", "the config file must have the same name as the model");
	expect_message("none", "could not open the data set");
}

/* What PyTorch leaves behind when CUDA cannot start: the runtime's code, its own message, the exception. */
static void no_driver(struct tb *b, const char *libcuda)
{
	const char *words = "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU";
	uint32_t s;

	tb_init(b);
	s = tb_stack(b, TORCH "cuda/__init__.py:478:_lazy_init", USER, NULL);
	b->h->driver_version = libcuda[0] ? 12020 : 0;
	b->h->init_result = b->h->device_count = CW_UNKNOWN;
	snprintf(b->h->libcuda_path, sizeof(b->h->libcuda_path), "%s", libcuda);
	tb_fail_text(b, CW_SRC_RUNTIME, s, "cudaGetDeviceCount", "")->code = 35;
	tb_fail_text(b, CW_SRC_TORCH_CHECK, s, "device_count_impl", words);
	tb_fail_text(b, CW_SRC_PYTHON, s, "RuntimeError", words);
}

static void driver__without_a_library_it_is_missing_with_one_it_is_too_old(void **state)
{
	struct tb b;

	(void)state;
	no_driver(&b, "");
	expect(&b, "container-without-gpu", "possible");
	no_driver(&b, "");
	expect_not(&b, "driver-too-old");
	no_driver(&b, "/usr/lib/x86_64-linux-gnu/libcuda.so.1");
	expect(&b, "driver-too-old", "likely");
	no_driver(&b, "/usr/lib/x86_64-linux-gnu/libcuda.so.1");
	expect_not(&b, "container-without-gpu");
}

static void sticky(struct tb *b, uint32_t code, const char *first, const char *second)
{
	tb_init(b);
	if (first)
		tb_launch(b, 1, tb_stack(b, first, NULL));
	if (second)
		tb_launch(b, 1, tb_stack(b, second, NULL));
	tb_fail(b, CW_SRC_DRIVER, code, tb_stack(b, USER, NULL))->api = 32;
}

static void sticky__the_code_tells_the_kind_but_not_the_kernel(void **state)
{
	struct tb b;
	json_t *j;

	(void)state;
	sticky(&b, 700, NULL, NULL);
	j = judge(&b, 1);
	assert_string_equal(field(j, "cause"), "illegal-access-out-of-bounds");
	assert_string_equal(field(j, "certainty"), "possible");
	assert_true(mentions(j, "why", "ran earlier"));
	assert_true(mentions(j, "why", "cuStreamSynchronize reported it"));
	json_decref(j);
	sticky(&b, 716, NULL, NULL);
	expect(&b, "misaligned-address", "likely");
	sticky(&b, 710, NULL, NULL);
	expect(&b, "kernel-assert", "likely");
	sticky(&b, 719, NULL, NULL);
	expect(&b, "kernel-trap", "possible");
	sticky(&b, 719, NULL, NULL);
	expect_not(&b, "illegal-access-out-of-bounds");
	sticky(&b, 700, NULL, NULL);
	expect_not(&b, "kernel-assert");
	sticky(&b, 721, NULL, NULL);
	expect(&b, "unknown", "possible");
	sticky(&b, 700, NULL, NULL);
	expect_not(&b, "misaligned-address");
	sticky(&b, 700, NULL, NULL);
	expect_not(&b, "kernel-trap");
}

/* A process that was found waiting at USER for what `line` launched. */
static void hanging(struct tb *b, const char *line)
{
	struct cw_launch *l;

	tb_init(b);
	if (line) {
		l = tb_launch(b, 1, tb_stack(b, line, NULL));
		l->func = tb_function(b, "_Z4spinPi");
		memcpy(l->grid, G(4, 1, 1), sizeof(l->grid));
		memcpy(l->block, G(64, 1, 1), sizeof(l->block));
	}
	b->h->hang = (struct cw_hang){.mono_ns = 5000, .flags = CW_HANG_TRIGGERED | CW_HANG_END, .n = 1};
	b->h->hang.thread[0].tid = 1;
	b->h->hang.thread[0].api = 32;
	b->h->hang.thread[0].stack = tb_stack(b, USER, NULL);
	b->h->hang.thread[0].waited_ns = 60500000000ull;
}

static json_t *judge_hang(struct tb *b, const struct culprit *c, int exit, int signal)
{
	struct trace *t = tb_trace(b);
	struct process_end end = {.pid = 100, .status_known = true, .exit = exit, .signal = signal, .fault = c};
	struct verdict *v = verdict_of_process(t, &end);
	json_t *j = verdict_object(v);

	verdict_free(v);
	trace_free(t);
	return j;
}

static void expect_hang(json_t *j, const char *certainty)
{
	assert_string_equal(field(j, "cause"), "kernel-hang");
	assert_string_equal(field(j, "certainty"), certainty);
	assert_int_equal(json_array_size(json_object_get(j, "waiting")), 1);
	json_decref(j);
}

static void hang__the_dump_and_the_launch_make_it_certain(void **state)
{
	struct culprit c = { .fault = FAULT_RUNNING, .source = CULPRIT_RUNNING, .grid_known = true,
			    .kernel = (char *)"_Z4spinPi",
			    .kernel_text = (char *)"spin(int*)",
			    .grid = {4, 1, 1},
			    .block = {64, 1, 1},
			    .exception_name = "NONE",
			    .n_lanes = 256};
	struct tb b;
	json_t *j;

	(void)state;
	hanging(&b, "train.py:30:step");
	j = judge_hang(&b, &c, -1, 15);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "where"), "line")), 30);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "noticed"), "line")), 32);
	assert_true(mentions(j, "why", "waited 60 s in cuStreamSynchronize"));
	expect_hang(j, "certain");
	c.grid[0] = 5;		/* no such launch is in the recording */
	hanging(&b, "train.py:30:step");
	expect_hang(judge_hang(&b, &c, -1, 15), "likely");
}

static void hang__without_a_dump_it_is_likely_at_most(void **state)
{
	struct culprit idle = {.fault = FAULT_NOTHING, .exception_name = "NONE"};
	struct tb b;
	json_t *j;

	(void)state;
	hanging(&b, "train.py:30:step");
	b.h->hang.flags = CW_HANG_TRIGGERED | CW_HANG_NO_DUMP;
	j = judge_hang(&b, NULL, -1, 15);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "where"), "line")), 30);
	assert_true(mentions(j, "why", "the driver wrote no dump"));
	expect_hang(j, "likely");
	hanging(&b, NULL);
	expect_hang(judge_hang(&b, NULL, -1, 15), "possible");
	hanging(&b, "train.py:30:step");
	j = judge_hang(&b, &idle, -1, 15);
	assert_true(mentions(j, "why", "no kernel on the GPU"));
	expect_hang(j, "possible");
}

static void hang__the_719_that_follows_is_part_of_it(void **state)
{
	struct tb b;
	json_t *j;

	(void)state;
	hanging(&b, "train.py:30:step");
	tb_fail(&b, CW_SRC_DRIVER, 719, tb_stack(&b, USER, NULL))->mono_ns = 6000;
	j = judge_hang(&b, NULL, 1, 0);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "error"), "code")), 719);
	assert_false(mentions(j, "candidates", "kernel-trap"));
	assert_int_equal(json_array_size(json_object_get(j, "notes")), 0);
	expect_hang(j, "likely");
	/* a program that handled it */
	hanging(&b, "train.py:30:step");
	tb_fail(&b, CW_SRC_DRIVER, 719, tb_stack(&b, USER, NULL))->mono_ns = 6000;
	j = judge_hang(&b, NULL, 0, 0);
	assert_string_equal(field(j, "cause"), "none");
	assert_true(mentions(j, "notes", "kernel-hang"));
	json_decref(j);
}

static void hang__what_had_failed_before_leads(void **state)
{
	struct tb b;

	(void)state;
	hanging(&b, "train.py:30:step");
	tb_fail(&b, CW_SRC_DRIVER, 719, tb_stack(&b, USER, NULL))->mono_ns = 4000;
	expect(&b, "kernel-trap", "possible");
}

static void sticky__one_line_alone_is_where_it_happened(void **state)
{
	struct tb b;
	json_t *j;

	(void)state;
	sticky(&b, 700, "model.py:12:attend", "model.py:12:attend");
	j = judge(&b, 1);
	assert_string_equal(field(j, "certainty"), "likely");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "where"), "line")), 12);
	assert_int_equal(json_array_size(json_object_get(j, "suspects")), 1);
	json_decref(j);
}

static void sticky__of_two_lines_nobody_can_say_which(void **state)
{
	struct tb b;
	json_t *j;

	(void)state;
	sticky(&b, 700, "model.py:12:attend", "model.py:20:mix");
	j = judge(&b, 1);
	assert_string_equal(field(j, "certainty"), "possible");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "where"), "line")), 32);
	assert_int_equal(json_array_size(json_object_get(j, "suspects")), 2);
	/* newest first */
	assert_int_equal(json_integer_value(json_object_get(json_array_get(json_object_get(j, "suspects"), 0), "line")),
			 20);
	json_decref(j);
}

static const struct match *best(struct matches *m, struct casefile *f, struct pool *pool)
{
	rules_match(m, kb_get(), f, pool);
	assert_true(m->n > 0);
	return &m->list[0];
}

/* What was taken away from a card of 12 GB; `first`: what would have freed the most. */
static void proven(struct casefile *f, struct pool *pool, const char *first, double ways)
{
	case_init(f, pool);
	fact_set_flag(f, FACT_oom_is, true);
	fact_set_flag(f, FACT_oom_host, false);
	fact_set_number(f, FACT_oom_request, 1e9);
	fact_set_number(f, FACT_oom_free, 1e8);
	fact_set_number(f, FACT_oom_total, 12e9);
	fact_set_number(f, FACT_oom_torch_allocated, 10e9);
	fact_set_number(f, FACT_oom_torch_reserved, 12e9);
	fact_set_number(f, FACT_oom_cache, 2e9);
	fact_set_number(f, FACT_frag_free, 2e9);
	fact_set_flag(f, FACT_others_known, true);
	fact_set_flag(f, FACT_room_known, true);
	fact_set_flag(f, FACT_room_proven, true);
	fact_set_flag(f, FACT_room_exact, true);
	fact_set_number(f, FACT_room_grown, 0);
	fact_set_text(f, FACT_room_first, first);
	fact_set_number(f, FACT_room_ways, ways);
	fact_set_flag(f, FACT_room_alone, ways == 1);
	fact_set_number(f, FACT_oom_earlier, 0);
	fact_set_flag(f, FACT_room_most_ever, false);
	fact_set_flag(f, FACT_room_postponed, false);
	fact_set_number(f, FACT_room_turn, 0);
	fact_set_flag(f, FACT_turn_first, false);
	fact_set_number(f, FACT_graph_nodes, 100);
	fact_set_number(f, FACT_graph_nodes_run, 90);
	fact_set_number(f, FACT_graph_rounds, 9);
	fact_set_number(f, FACT_graph_kept, 8e9);
	fact_set_flag(f, FACT_graph_loop_run, true);
	fact_set_flag(f, FACT_grow_is, true);
	fact_set_number(f, FACT_grow_turns, 8);
}

static void memory__only_what_alone_is_enough_is_certain(void **state)
{
	static const struct {
		const char *first, *cause;
	} ways[] = {{"graphs", "oom-graph-retention"},
		    {"growth", "oom-growth"},
		    {"gaps", "oom-fragmentation"},
		    {"pools", "oom-private-pool"},
		    {"", "oom-capacity"}};
	struct pool pool = {0};
	struct matches m;
	struct casefile f;

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		proven(&f, &pool, ways[i].first, ways[i].first[0] ? 1 : 0);
		assert_string_equal(AT(best(&m, &f, &pool)->cause->id), ways[i].cause);
		assert_int_equal(best(&m, &f, &pool)->sure, KB_CERTAIN);
		if (!ways[i].first[0])
			continue;
		proven(&f, &pool, ways[i].first, 2);
		assert_string_equal(AT(best(&m, &f, &pool)->cause->id), ways[i].cause);
		assert_int_equal(best(&m, &f, &pool)->sure, KB_LIKELY);
	}
	pool_release(&pool);
}

static void memory__capacity_is_not_certain_of_loops_that_ran_again_unseen(void **state)
{
	struct pool pool = {0};
	struct matches m;
	struct casefile f;

	(void)state;
	for (int enough = 0; enough < 2; enough++) {
		proven(&f, &pool, "", 0);
		fact_set_number(&f, FACT_room_again,
				fact_number(&f, FACT_oom_request, 0) - fact_number(&f, FACT_oom_free, 0) - !enough);
		assert_string_equal(AT(best(&m, &f, &pool)->cause->id), "oom-capacity");
		assert_int_equal(best(&m, &f, &pool)->sure, enough ? KB_LIKELY : KB_CERTAIN);
	}
	pool_release(&pool);
}

static void assertion__of_a_range_is_about_nan_where_the_program_had_read_one(void **state)
{
	struct pool pool = {0};
	struct matches m;
	struct casefile f;
	static const char *const read[] = {NULL, "NaN", "infinity", "-infinity"};	/* an infinite norm is normal with a GradScaler */

	(void)state;

	for (size_t i = 0; i < sizeof(read) / sizeof(read[0]); i++) {
		case_init(&f, &pool);
		fact_set_number(&f, FACT_error_code, 710);
		fact_set_text(&f, FACT_fault_kind, "assert");
		fact_set_text(&f, FACT_assert_about, "range");
		fact_set_flag(&f, FACT_assert_nan, false);
		if (read[i])
			fact_set_text(&f, FACT_number_value, read[i]);
		assert_string_equal(AT(best(&m, &f, &pool)->cause->id),
				    i == 1 ? "nan-in-loss-assert" : "input-out-of-range");
		assert_int_equal(best(&m, &f, &pool)->sure, KB_LIKELY);
	}
	pool_release(&pool);
}

static bool is_candidate(const struct matches *m, const char *cause)
{
	for (size_t i = 0; i < m->n; i++)
		if (!strcmp(AT(m->list[i].cause->id), cause))
			return true;
	return false;
}

/* Before any backward, the graphs of the first pass are what it needs, unless the source says that they are kept. */
static void memory__the_first_pass_needs_its_graphs(void **state)
{
	struct pool pool = {0};
	struct casefile f;
	struct matches m;

	(void)state;
	for (int kept = 0; kept < 2; kept++) {
		proven(&f, &pool, "graphs", 1);
		fact_set_number(&f, FACT_graph_nodes_run, 0);
		fact_set_flag(&f, FACT_graph_trains, true);
		fact_set_flag(&f, FACT_turn_first_pass, true);
		fact_set_text(&f, FACT_graph_use, kept ? "kept" : "");
		assert_string_equal(AT(best(&m, &f, &pool)->cause->id), kept ? "oom-graph-retention" : "oom-capacity");
		assert_int_equal(best(&m, &f, &pool)->sure, KB_LIKELY);
		assert_true(is_candidate(&m, "oom-graph-retention"));
	}
	pool_release(&pool);
}

static void memory__a_pass_that_backward_never_runs_over_needs_no_graph(void **state)
{
	struct pool pool = {0};
	struct casefile f;
	struct matches m;

	(void)state;
	for (int spare = -1; spare < 2; spare += 2) {
		proven(&f, &pool, "", 0);
		fact_set_flag(&f, FACT_grow_is, false);
		fact_set_number(&f, FACT_graph_rounds, 1);
		fact_set_flag(&f, FACT_graph_evaluates, true);
		fact_set_number(&f, FACT_room_no_grad, spare * 1e9);
		assert_string_equal(AT(best(&m, &f, &pool)->cause->id),
				    spare > 0 ? "oom-eval-without-no-grad" : "oom-capacity");
	}
	pool_release(&pool);
}

/* One pass, which may be the first step of a training, unless its code says otherwise. */
static void memory__an_inference_that_keeps_its_pass_needs_no_graph(void **state)
{
	struct pool pool = {0};
	struct casefile f;
	struct matches m;

	(void)state;
	for (int trains = -1; trains < 2; trains++) {
		proven(&f, &pool, "", 0);
		fact_set_flag(&f, FACT_grow_is, false);
		fact_set_number(&f, FACT_graph_nodes_run, 0);
		fact_set_number(&f, FACT_graph_rounds, 1);
		fact_set_number(&f, FACT_room_no_grad, 1e9);
		fact_set_flag(&f, FACT_room_postponed, true);
		if (trains >= 0)
			fact_set_flag(&f, FACT_graph_trains, trains);
		assert_string_equal(AT(best(&m, &f, &pool)->cause->id),
				    trains == 0 ? "oom-eval-without-no-grad" : "oom-capacity");
		assert_int_equal(best(&m, &f, &pool)->sure, KB_LIKELY);
	}
	pool_release(&pool);
}

/* A rollout, or a decoder with its cache: the graph grows from step to step. Where backward runs in no step, it may come later, or never. */
static void memory__graphs_of_a_loop_without_backward_are_not_certain(void **state)
{
	struct pool pool = {0};
	struct casefile f;
	struct matches m;

	(void)state;
	for (int evaluates = 0; evaluates < 3; evaluates++) {
		proven(&f, &pool, "graphs", 1);
		fact_set_flag(&f, FACT_grow_is, false);
		fact_set_flag(&f, FACT_graph_loop_run, false);
		fact_set_flag(&f, FACT_graph_evaluates, evaluates > 0);
		fact_set_number(&f, FACT_oom_tried, evaluates == 2 ? 8e9 : 0);	/* an exception keeps it */
		assert_string_equal(AT(best(&m, &f, &pool)->cause->id),
				    evaluates == 1 ? "oom-eval-without-no-grad" : "oom-graph-retention");
		assert_int_equal(best(&m, &f, &pool)->sure, KB_LIKELY);
	}
	pool_release(&pool);
}

/* PyTorch refused although the card had room: a higher limit would have been enough, too. */
static void memory__a_limit_of_the_program_speaks_against_certain(void **state)
{
	static const char *const ways[] = {"growth", "graphs"};
	struct pool pool = {0};
	struct casefile f;
	struct matches m;

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		proven(&f, &pool, ways[i], 1);
		fact_set_flag(&f, FACT_oom_by_torch, true);
		fact_set_number(&f, FACT_oom_free, 6e9);
		best(&m, &f, &pool);
		for (size_t k = 0; k < m.n; k++)
			assert_false(m.list[k].sure == KB_CERTAIN && (!strcmp(AT(m.list[k].cause->id), "oom-growth") ||
				      !strcmp(AT(m.list[k].cause->id), "oom-graph-retention")));
	}
	pool_release(&pool);
}

/* A loop over layers in a method that is no forward() leaves activations, which backward takes away. */
static void memory__what_backward_waits_for_is_not_certain_to_pile_up(void **state)
{
	struct pool pool = {0};
	struct casefile f;
	struct matches m;

	(void)state;
	for (int waits = 0; waits < 2; waits++) {
		proven(&f, &pool, "growth", 1);
		fact_set_number(&f, FACT_grow_bytes, 6e9);
		fact_set_number(&f, FACT_memory_activations, waits ? 7e9 : 1e9);
		assert_string_equal(AT(best(&m, &f, &pool)->cause->id), "oom-growth");
		assert_int_equal(best(&m, &f, &pool)->sure, waits ? KB_LIKELY : KB_CERTAIN);
	}
	pool_release(&pool);
}

static void memory__pools_that_would_do_are_named_behind_the_gaps(void **state)
{
	struct pool pool = {0};
	struct casefile f;
	struct matches m;
	bool named = false;

	(void)state;
	proven(&f, &pool, "gaps", 2);
	fact_set_number(&f, FACT_room_pools, 1e6);
	assert_string_equal(AT(best(&m, &f, &pool)->cause->id), "oom-fragmentation");
	for (size_t i = 0; i < m.n; i++)
		named |= !strcmp(AT(m.list[i].cause->id), "oom-private-pool");
	assert_true(named);
	pool_release(&pool);
}

/* torch.cat of what there is and a little more, in every turn. */
static void memory__what_grows_in_place_is_growth(void **state)
{
	struct pool pool = {0};
	struct casefile f;
	struct matches m;

	(void)state;
	proven(&f, &pool, "", 0);
	fact_set_number(&f, FACT_room_grown, 9);
	fact_set_number(&f, FACT_room_grown_first, 1e6);
	for (int alone = 0; alone < 2; alone++) {
		fact_set_flag(&f, FACT_room_grown_alone, alone);
		assert_string_equal(AT(best(&m, &f, &pool)->cause->id), alone ? "oom-growth" : "oom-capacity");
		assert_int_equal(best(&m, &f, &pool)->sure, KB_LIKELY);
	}
	pool_release(&pool);
}

/* A try that failed is kept by its exception; the retry finds the GPU full, and no turn has left anything. */
static void memory__after_a_failed_try_capacity_is_not_certain(void **state)
{
	struct pool pool = {0};
	struct matches m;
	struct casefile f;

	(void)state;
	proven(&f, &pool, "", 0);
	fact_set_number(&f, FACT_oom_earlier, 1);
	assert_string_equal(AT(best(&m, &f, &pool)->cause->id), "oom-capacity");
	assert_int_equal(m.list[0].sure, KB_LIKELY);
	pool_release(&pool);
}

static void memory__gaps_in_a_first_turn_are_not_the_reason(void **state)
{
	struct pool pool = {0};
	struct matches m;
	struct casefile f;

	(void)state;
	proven(&f, &pool, "gaps", 1);
	fact_set_flag(&f, FACT_turn_first, true);
	assert_string_equal(AT(best(&m, &f, &pool)->cause->id), "oom-capacity");
	assert_int_equal(m.list[0].sure, KB_LIKELY);
	pool_release(&pool);
}

/* As a program whose batches get larger: with gaps or without, this one is too large. */
static void memory__gaps_that_only_postpone_are_not_the_reason(void **state)
{
	struct pool pool = {0};
	struct matches m;
	struct casefile f;

	(void)state;
	proven(&f, &pool, "gaps", 1);
	fact_set_flag(&f, FACT_room_most_ever, true);
	assert_string_equal(AT(best(&m, &f, &pool)->cause->id), "oom-fragmentation");
	assert_int_equal(m.list[0].sure, KB_LIKELY);
	proven(&f, &pool, "", 0);
	fact_set_flag(&f, FACT_room_most_ever, true);
	fact_set_flag(&f, FACT_room_postponed, true);
	fact_set_number(&f, FACT_room_packed, 9e8);
	fact_set_number(&f, FACT_room_turn, 3e9);
	fact_set_text(&f, FACT_room_loop, "model.py:27");
	assert_string_equal(AT(best(&m, &f, &pool)->cause->id), "oom-capacity");
	assert_int_equal(m.list[0].sure, KB_LIKELY);
	pool_release(&pool);
}

/* A limit of 98 % of the GPU stops a program that needs three times the GPU a moment before the GPU itself would. */
static void memory__a_limit_that_only_comes_earlier_is_not_the_reason(void **state)
{
	static const struct { double free, turn; const char *cause; enum sureness sure; } seen[] = {
		{11.5e9, 0, "oom-memory-fraction", KB_CERTAIN}, {4e9, 2e9, "oom-memory-fraction", KB_LIKELY},
		    {2e9, 2e9, "oom-capacity", KB_LIKELY}};
	struct pool pool = {0};
	struct matches m;
	struct casefile f;

	(void)state;
	for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
		proven(&f, &pool, "gaps", 1);
		fact_set_flag(&f, FACT_oom_by_torch, true);
		fact_set_number(&f, FACT_oom_free, seen[i].free);
		fact_set_number(&f, FACT_room_turn, seen[i].turn);
		fact_set_text(&f, FACT_room_loop, "model.py:27");
		fact_set_flag(&f, FACT_room_most_ever, true);
		fact_set_text(&f, FACT_error_text, "CUDA out of memory. 1.40 GiB allowed; Of the allocated memory");
		assert_string_equal(AT(best(&m, &f, &pool)->cause->id), seen[i].cause);
		assert_int_equal(m.list[0].sure, seen[i].sure);
	}
	pool_release(&pool);
}

static void memory__graphs_that_free_less_are_possible(void **state)
{
	struct pool pool = {0};
	struct matches m;
	struct casefile f;
	bool found = false;

	(void)state;
	proven(&f, &pool, "growth", 2);
	fact_set_number(&f, FACT_room_graphs, 1e9);
	assert_string_equal(AT(best(&m, &f, &pool)->cause->id), "oom-growth");
	for (size_t i = 1; i < m.n; i++)
		found |= !strcmp(AT(m.list[i].cause->id), "oom-graph-retention") && m.list[i].sure == KB_POSSIBLE;
	assert_true(found);
	pool_release(&pool);
}

static void address__that_nothing_confirms_is_never_certain(void **state)
{
	static const struct {
		const char *in, *cause;
		bool wraps;
	} how[] = {
		{"near", "illegal-access-out-of-bounds", false},	{"near", "illegal-access-int32-overflow", true},
		{"freed", "illegal-access-use-after-free", false},	{"host", "illegal-access-host-pointer", false},
		{"other-device", "illegal-access-wrong-device", false},
	};
	struct pool pool = {0};
	struct matches m;
	struct casefile f;

	(void)state;
	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		case_init(&f, &pool);
		fact_set_text(&f, FACT_fault_kind, "illegal-address");
		fact_set_text(&f, FACT_fault_address, "0x7f0000000000");
		fact_set_number(&f, FACT_fault_lines, 1);
		fact_set_number(&f, FACT_error_code, 700);
		fact_set_text(&f, FACT_address_in, how[i].in);
		fact_set_flag(&f, FACT_address_wraps, how[i].wraps);
		fact_set_flag(&f, FACT_address_wraps_sure, how[i].wraps);
		fact_set_flag(&f, FACT_address_given, true);
		fact_set_flag(&f, FACT_fault_device_sure, true);
		fact_set_flag(&f, FACT_fault_address_recomputed, true);
		fact_set_flag(&f, FACT_fault_address_unchecked, false);
		fact_set_flag(&f, FACT_fault_address_computed, false);
		fact_set_flag(&f, FACT_fault_address_perhaps, false);
		assert_string_equal(AT(best(&m, &f, &pool)->cause->id), how[i].cause);
		assert_int_equal(m.list[0].sure, KB_CERTAIN);
		fact_set_flag(&f, FACT_fault_address_unchecked, true);
		assert_string_equal(AT(best(&m, &f, &pool)->cause->id), how[i].cause);
		assert_int_equal(m.list[0].sure, KB_LIKELY);
		/* executed again, with everything known and with something left open */
		fact_set_flag(&f, FACT_fault_address_unchecked, false);
		fact_set_flag(&f, FACT_fault_address_computed, true);
		assert_string_equal(AT(best(&m, &f, &pool)->cause->id), how[i].cause);
		assert_int_equal(m.list[0].sure, KB_CERTAIN);
		fact_set_flag(&f, FACT_fault_address_perhaps, true);
		assert_string_equal(AT(best(&m, &f, &pool)->cause->id), how[i].cause);
		assert_int_equal(m.list[0].sure, KB_LIKELY);
	}
	pool_release(&pool);
}

/* The thread is gone, and its code cannot be executed: what it was given is all that is known. */
static void address__that_is_not_known_is_likely_what_was_passed(void **state)
{
	struct pool pool = {0};
	struct matches m;
	struct casefile f;

	(void)state;
	case_init(&f, &pool);
	fact_set_text(&f, FACT_fault_kind, "illegal-address");
	fact_set_number(&f, FACT_fault_lines, 1);
	fact_set_number(&f, FACT_error_code, 700);
	fact_set_flag(&f, FACT_fault_address_unchecked, false);
	fact_set_flag(&f, FACT_fault_address_computed, false);
	fact_set_flag(&f, FACT_fault_address_perhaps, false);
	fact_set_text(&f, FACT_address_in, "passed");
	assert_string_equal(AT(best(&m, &f, &pool)->cause->id), "illegal-access-out-of-bounds");
	assert_int_equal(m.list[0].sure, KB_LIKELY);
	fact_set_text(&f, FACT_address_in, "freed");
	assert_string_equal(AT(best(&m, &f, &pool)->cause->id), "illegal-access-use-after-free");
	assert_int_equal(m.list[0].sure, KB_LIKELY);
	pool_release(&pool);
}

/* The dump of such a fault, and a recording in which as many lines launched its kernel. */
static json_t *judge_fault(const struct dump_plan *p, uint32_t code, unsigned lines)
{
	struct found found = dump_find(p);
	struct process_end end = {.pid = 100, .status_known = true, .exit = 1, .fault = found.c};
	struct cw_launch *l;
	struct verdict *v;
	struct trace *t;
	struct tb b;
	char at[32];
	json_t *j;

	tb_init(&b);
	for (unsigned k = 0; k < lines; k++) {
		snprintf(at, sizeof(at), "train.py:%u:step", 30 + k);
		l = tb_launch(&b, 1, tb_stack(&b, at, NULL));
		l->func = tb_function(&b, "_Z4fillPfl");
		memcpy(l->grid, G(4, 1, 1), sizeof(l->grid));
	}
	tb_fail(&b, CW_SRC_DRIVER, code, tb_stack(&b, USER, NULL));
	t = tb_trace(&b);
	v = verdict_of_process(t, &end);
	trace_free(t);
	dump_found(&found);
	j = verdict_object(v);
	verdict_free(v);
	return j;
}

static void expect_fault(const struct dump_plan *p, uint32_t code, unsigned lines, const char *exception,
			 const char *certainty)
{
	json_t *j = judge_fault(p, code, lines);

	assert_string_equal(field(j, "cause"), "illegal-access-out-of-bounds");
	assert_string_equal(field(j, "certainty"), certainty);
	assert_string_equal(field(json_object_get(j, "fault"), "exception"), exception);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "where"), "line")), 30 + lines - 1);
	json_decref(j);
}

/* A store far outside a thread's own array. */
static void out_of_range__is_certain_where_one_line_launched_the_kernel(void **state)
{
	static const struct dump_plan p = { .lane_exception = 5, .lanes_hit = 1, .error_pc = 0x90, .lane_pc = 0xa0,
					   .code = {[9] = MAKE_STL, [10] = MAKE_EXIT},
					   .reg = {[0][1] = 0xfff7e0, [0][2] = 0x1000}};

	(void)state;
	expect_fault(&p, 700, 1, "WARP_OUT_OF_RANGE_ADDRESS", "certain");
	expect_fault(&p, 700, 2, "WARP_OUT_OF_RANGE_ADDRESS", "likely");
}

/* An address so wrong that it is in the window of shared memory: on an H200 an access there returns 717, elsewhere
 * 700. */
static void address_space__is_the_same_mistake_and_never_certain(void **state)
{
	static const struct dump_plan p = { .lane_exception = 7, .lanes_hit = 1, .error_pc = 0x10, .lane_pc = 0x20,
					   .code = {MAKE_MOV_R9, MAKE_STG, MAKE_BRA},
					   .reg = {[0][2] = 0x400, [0][3] = 0x7d}};

	(void)state;
	expect_fault(&p, 717, 1, "WARP_INVALID_ADDRESS_SPACE", "likely");
	expect_fault(&p, 717, 2, "WARP_INVALID_ADDRESS_SPACE", "likely");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory__only_what_alone_is_enough_is_certain),
		cmocka_unit_test(memory__capacity_is_not_certain_of_loops_that_ran_again_unseen),
		cmocka_unit_test(memory__pools_that_would_do_are_named_behind_the_gaps),
		cmocka_unit_test(memory__the_first_pass_needs_its_graphs),
		cmocka_unit_test(memory__what_backward_waits_for_is_not_certain_to_pile_up),
		cmocka_unit_test(memory__a_pass_that_backward_never_runs_over_needs_no_graph),
		cmocka_unit_test(memory__an_inference_that_keeps_its_pass_needs_no_graph),
		cmocka_unit_test(memory__graphs_of_a_loop_without_backward_are_not_certain),
		cmocka_unit_test(memory__a_limit_of_the_program_speaks_against_certain),
		cmocka_unit_test(memory__what_grows_in_place_is_growth),
		cmocka_unit_test(memory__after_a_failed_try_capacity_is_not_certain),
		cmocka_unit_test(memory__gaps_in_a_first_turn_are_not_the_reason),
		cmocka_unit_test(memory__gaps_that_only_postpone_are_not_the_reason),
		cmocka_unit_test(memory__a_limit_that_only_comes_earlier_is_not_the_reason),
		cmocka_unit_test(memory__graphs_that_free_less_are_possible),
		cmocka_unit_test(address__that_nothing_confirms_is_never_certain),
		cmocka_unit_test(address__that_is_not_known_is_likely_what_was_passed),
		cmocka_unit_test(kb__every_cause_has_rules_and_something_to_say),
		cmocka_unit_test(kb__mistakes_in_a_file_are_found),
		cmocka_unit_test(kb__a_rule_uses_signs_and_no_phrases),
		cmocka_unit_test(kb__a_rule_does_not_ask_for_a_text_in_vain),
		cmocka_unit_test(kb__mistakes_in_a_sign_are_found),
		cmocka_unit_test(kb__every_sign_is_used),
		cmocka_unit_test(kb__no_sign_has_words_that_were_made_up),
		cmocka_unit_test(kb__a_sign_is_what_it_rests_on),
		cmocka_unit_test(expr__what_holds_is_a_ground_and_nothing_else),
		cmocka_unit_test(kb__a_cause_blames_a_line_that_is_known),
		cmocka_unit_test(kb__a_rule_names_its_cuda_codes),
		cmocka_unit_test(kb__a_rule_names_the_numbers_it_compares_with),
		cmocka_unit_test(kb__a_small_file_is_read_whole),
		cmocka_unit_test(order__the_surer_one_leads_then_what_is_over_then_the_id),
		cmocka_unit_test(order__goes_through_causes_that_do_not_fit),
		cmocka_unit_test(order__of_equally_sure_rules_the_first_is_told),
		cmocka_unit_test(order__a_rule_that_is_named_stands_alone),
		cmocka_unit_test(order__a_circle_and_unknown_names_are_refused),
		cmocka_unit_test(order__what_is_explained_away_is_not_told),
		cmocka_unit_test(weighing__evidence_moves_a_cause_by_one_step),
		cmocka_unit_test(weighing__what_is_excluded_is_no_candidate),
		cmocka_unit_test(weighing__evidence_counts_before_the_order),
		cmocka_unit_test(weighing__a_tie_is_a_step_less_certain),
		cmocka_unit_test(weighing__mistakes_in_evidence_are_found),
		cmocka_unit_test(grid_limit__names_dimension_value_limit_and_pieces),
		cmocka_unit_test(grid_limit__the_limit_itself_is_allowed),
		cmocka_unit_test(grid_limit__without_the_devices_limits_it_is_likely),
		cmocka_unit_test(grid_limit__is_read_from_the_drivers_log),
		cmocka_unit_test(launch__unknown_dimensions_are_could_not_check),
		cmocka_unit_test(block_limit__threads_in_all_and_each_dimension),
		cmocka_unit_test(shared__above_what_the_kernel_may_ask),
		cmocka_unit_test(shared__an_opt_in_above_the_devices_limit),
		cmocka_unit_test(shared__triton_refuses_before_the_driver),
		cmocka_unit_test(launch_bounds__not_explained_by_registers),
		cmocka_unit_test(too_many_resources__by_the_register_arithmetic),
		cmocka_unit_test(empty_input__a_dimension_of_zero),
		cmocka_unit_test(bad_shape__a_negative_number_in_disguise),
		cmocka_unit_test(ordinal__asked_for_and_visible),
		cmocka_unit_test(visible_wrong__hides_all_or_names_what_is_not_there),
		cmocka_unit_test(visible_late__the_value_changed_after_the_start),
		cmocka_unit_test(arch__whose_kernel_it_was),
		cmocka_unit_test(arch__when_nobody_can_say_whose_both_are_possible),
		cmocka_unit_test(ptx__newer_than_the_driver),
		cmocka_unit_test(capture__the_first_illegal_call_and_where_it_began),
		cmocka_unit_test(fork__by_pytorch_by_code_and_by_words),
		cmocka_unit_test(oom__one_request_larger_than_the_card),
		cmocka_unit_test(oom__a_limit_of_the_process_is_not_a_full_card),
		cmocka_unit_test(oom__live_tensors_fill_the_card),
		cmocka_unit_test(oom__attempts_that_were_survived_do_not_lend_their_line),
		cmocka_unit_test(messages__device),
		cmocka_unit_test(messages__shape),
		cmocka_unit_test(messages__dtype),
		cmocka_unit_test(messages__others_are_none_of_ours),
		cmocka_unit_test(driver__without_a_library_it_is_missing_with_one_it_is_too_old),
		cmocka_unit_test(sticky__the_code_tells_the_kind_but_not_the_kernel),
		cmocka_unit_test(hang__the_dump_and_the_launch_make_it_certain),
		cmocka_unit_test(hang__without_a_dump_it_is_likely_at_most),
		cmocka_unit_test(hang__the_719_that_follows_is_part_of_it),
		cmocka_unit_test(hang__what_had_failed_before_leads),
		cmocka_unit_test(sticky__one_line_alone_is_where_it_happened),
		cmocka_unit_test(sticky__of_two_lines_nobody_can_say_which),
		cmocka_unit_test(out_of_range__is_certain_where_one_line_launched_the_kernel),
		cmocka_unit_test(address_space__is_the_same_mistake_and_never_certain),
		cmocka_unit_test(assertion__of_a_range_is_about_nan_where_the_program_had_read_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
