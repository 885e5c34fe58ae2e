/* SPDX-License-Identifier: Apache-2.0
 * Loops over layers (see layers.h): `for layer in layers: x = layer(x)`.
 *
 * Two things make one: what a turn calls is what the loop goes over, another one in each turn, and it is called with what the turn before
 * has made. A loop over batches calls the same model with other data; one over trials or members of an ensemble calls each with the same.
 */
#include "find/code/layers.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "case/source.h"
#include "find/code/flow.h"
#include "read/recording/trace.h"

#define NAMES_MAX 32

struct names { const char *name[NAMES_MAX]; size_t n; };

/* The statements of a loop, without its head. */
struct body { struct statement *list; int n; };

/* A part of a statement's text. */
struct span { const char *text; size_t from, to; };

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static size_t word_length(const char *s)
{
	size_t n = 0;

	while (is_word(s[n]))
		n++;
	return n;
}

static bool has_name(const struct names *l, const char *name, size_t n)
{
	for (size_t i = 0; i < l->n; i++)
		if (strlen(l->name[i]) == n && !strncmp(l->name[i], name, n))
			return true;
	return false;
}

static void add_name(struct names *l, const char *name, size_t n, struct pool *pool)
{
	if (n && l->n < NAMES_MAX && !isdigit((unsigned char)*name) && !has_name(l, name, n))
		l->name[l->n++] = pool_copy(pool, name, n);
}

/* Does it read one of the names? An attribute of the same name, or a keyword of a call, does not count. */
static bool mentions(struct span s, const struct names *l)
{
	for (size_t i = s.from, n; i < s.to; i += n ? n : 1) {
		const char *after;

		n = word_length(s.text + i);
		if (!n || (i && s.text[i - 1] == '.') || !has_name(l, s.text + i, n))
			continue;
		after = s.text + i + n + strspn(s.text + i + n, " ");
		if (*after != '=' || after[1] == '=')
			return true;
	}
	return false;
}

/* Plain names that an assignment sets. */
static void add_targets(struct names *l, struct span s, struct pool *pool)
{
	for (size_t i = s.from, n; i < s.to; i += n ? n : 1) {
		const char *after;

		n = word_length(s.text + i);
		after = s.text + i + n + strspn(s.text + i + n, " ");
		if (n && !(i && s.text[i - 1] == '.') && *after != '.' && *after != '[' && *after != '(')
			add_name(l, s.text + i, n, pool);
	}
}

/* The statement as what it sets and what it reads; `s->to` of `sets` 0: it sets nothing. */
static void split(const struct statement *st, struct span *sets, struct span *reads)
{
	size_t op, at = flow_assignment(st->text, &op);

	*sets = (struct span){st->text, 0, at == SIZE_MAX ? 0 : at - op};
	*reads = (struct span){st->text, at == SIZE_MAX || op ? 0 : at + 1, strlen(st->text)};
}

/* Where the head of a compound statement ends. */
static size_t head_end(const char *text)
{
	size_t i = 0;

	for (; text[i] && text[i] != ':'; i += text[i] != '\0')
		i = strchr("([{", text[i]) ? flow_closing(text, i) : i;
	return i;
}

static void find_body(struct body *b, const struct code *c, int loop, struct pool *pool)
{
	const struct statement *head = &c->statement[loop];
	size_t end = head_end(head->text);

	b->list = pool_alloc(pool, (size_t)(c->n - loop) * sizeof(*b->list));
	b->n = 0;
	if (head->text[end] && head->text[end + 1]) {	/* the rest of its line */
		b->list[b->n] = *head;
		b->list[b->n].raw += end + 1;
		b->list[b->n++].text += end + 1;
	}
	for (int i = loop + 1; i < c->n && code_within(c, i, loop); i++)
		b->list[b->n++] = c->statement[i];
}

/* What a turn sets and has read before: what the turn before has left in it. */
static void find_carried(struct names *carried, const struct body *b, struct pool *pool)
{
	struct names set = {.n = 0}, read = {.n = 0};
	struct span sets, reads;

	for (int i = 0; i < b->n; i++) {
		split(&b->list[i], &sets, &reads);
		for (size_t k = reads.from, n; k < reads.to; k += n ? n : 1) {
			n = word_length(reads.text + k);
			if (n && !(k && reads.text[k - 1] == '.') && !has_name(&set, reads.text + k, n))
				add_name(&read, reads.text + k, n, pool);
		}
		add_targets(&set, sets, pool);
	}
	*carried = (struct names){.n = 0};
	for (size_t i = 0; i < set.n; i++)
		if (has_name(&read, set.name[i], strlen(set.name[i])))
			add_name(carried, set.name[i], strlen(set.name[i]), pool);
}

static size_t opening(const char *text, size_t close)
{
	int depth = 0;

	for (size_t i = close + 1; i > 0; i--) {
		depth += strchr(")]}", text[i - 1]) != NULL;
		depth -= strchr("([{", text[i - 1]) != NULL;
		if (!depth)
			return i - 1;
	}
	return SIZE_MAX;
}

/* Where the expression begins that is called by the bracket at `open`: self.layers[i], layer.attend, getattr(self, name). */
static size_t callee_begin(const char *text, size_t open)
{
	size_t i = open;

	while (i > 0) {
		char c = text[i - 1];

		if (is_word(c) || c == '.')
			i--;
		else if ((c == ']' || c == ')') && opening(text, i - 1) != SIZE_MAX)
			i = opening(text, i - 1);
		else
			break;
	}
	return i;
}

/* checkpoint(layer, x): what runs the layer is called with it. */
static bool is_checkpoint(const char *text, size_t begin, size_t open)
{
	static const char word[] = "checkpoint";

	for (size_t i = begin; i + sizeof(word) - 1 <= open; i++)
		if (!strncmp(text + i, word, sizeof(word) - 1))
			return true;
	return false;
}

/* Does it call one of `over` with something that `fed` has? */
static bool calls_with(const struct statement *s, struct span part, const struct names *over, const struct names *fed)
{
	for (size_t i = part.from; i < part.to; i++) {
		size_t begin, end;
		struct span callee;

		if (s->text[i] != '(' || (begin = callee_begin(s->text, i)) == i)
			continue;
		end = flow_closing(s->text, i);
		callee = (struct span){s->raw, begin, i};
		if (is_checkpoint(s->text, begin, i))
			callee = (struct span){s->raw, i, i + 1 + strcspn(s->raw + i + 1, ",)")};
		if (mentions(callee, over) && mentions((struct span){s->text, i + 1, end}, fed))
			return true;
	}
	return false;
}

/* An inner loop over the layers of a stage, or a name for a layer: its names stand for layers, too. */
static void add_aliases(struct names *over, const struct statement *s, struct pool *pool)
{
	const char *in = code_begins(s, "for") ? strstr(s->text, " in ") : NULL;
	struct span sets, reads;

	split(s, &sets, &reads);
	if (in && mentions((struct span){s->text, (size_t)(in - s->text) + strlen(" in "), head_end(s->text)}, over))
		add_targets(over, (struct span){s->text, strlen("for"), (size_t)(in - s->text)}, pool);
	else if (sets.to && (!strchr(s->text, '(') || strstr(s->text + reads.from, "getattr(")) &&
		 mentions((struct span){s->raw, reads.from, reads.to}, over))
		add_targets(over, sets, pool);
}

bool code_runs_layers(const struct code *c, int loop, struct pool *pool)
{
	const struct statement *head = &c->statement[loop];
	const char *in = code_begins(head, "for") ? strstr(head->text, " in ") : NULL;
	struct names over = {.n = 0}, fed;
	struct span sets, reads;
	struct body body;

	if (!in)
		return false;
	add_targets(&over, (struct span){head->text, strlen("for"), (size_t)(in - head->text)}, pool);
	find_body(&body, c, loop, pool);
	find_carried(&fed, &body, pool);
	for (int i = 0; fed.n && i < body.n; i++) {
		split(&body.list[i], &sets, &reads);
		add_aliases(&over, &body.list[i], pool);
		if (sets.to && calls_with(&body.list[i], reads, &over, &fed))
			return true;
		if (sets.to && mentions(reads, &fed))	/* made of it, to be handed on */
			add_targets(&fed, sets, pool);
	}
	return false;
}

static bool read_source(struct trace *t, const char *file, uint32_t line)
{
	struct pool pool = {0};
	struct code c;
	struct buf text;
	bool found = false;
	int at;

	if (source_text(trace_sources(t), file, &text) && code_read(&c, file, text.data, text.len, &pool)) {
		at = code_at(&c, line);
		found = at >= 0 && code_runs_layers(&c, at, &pool);
	}
	buf_release(&text);
	pool_release(&pool);
	return found;
}

bool loop_is_over_layers(struct trace *t, const char *file, uint32_t line)
{
	struct source_book *book = trace_sources(t);
	struct pool pool = {0};
	const char *key = pool_printf(&pool, "layers %u", line);
	const json_t *note = source_note(book, file, key);
	bool found = note ? json_is_true(note) : read_source(t, file, line);

	if (!note)
		source_keep_note(book, file, key, json_boolean(found));
	pool_release(&pool);
	return found;
}
