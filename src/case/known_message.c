/* SPDX-License-Identifier: Apache-2.0
 * Messages of open packages (see known_message.h).
 */
#include "case/known_message.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "case/knowledge.h"
#include "case/message.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define QUOTES "('\""
#define WRAPPED_MAX 4	/* messages in messages */
#define TEXT_HOLE_MAX 400	/* characters that {text} may stand for */

static const struct known_message rows[] = {
#define MESSAGE(template, package, version, file, causes) {template, package, version, file, causes, false},
#define LOGGED(template, package, version, file, causes) {template, package, version, file, causes, true},
#include "kb/messages.def"
};

static const char *const wrappers[] = {
#define WRAPPER(template, package, version, file) template,
#include "kb/messages.def"
};

const struct known_message *known_messages(size_t *n)
{
	*n = COUNT(rows);
	return rows;
}

static size_t take_digits(const char *s)
{
	size_t n = 0;

	while (isdigit((unsigned char)s[n]) || (n && s[n] == ',' && isdigit((unsigned char)s[n + 1])))
		n++;
	return n;
}

static size_t take_number(const char *s)
{
	size_t sign = *s == '-', n = sign + take_digits(s + sign);

	if (n == sign)
		return 0;
	if (s[n] == '.' && isdigit((unsigned char)s[n + 1]))
		n += 1 + take_digits(s + n + 1);
	return n;
}

static size_t take_bytes(const char *s)
{
	static const char *const units[] = {"bytes", "byte", "KiB", "MiB", "GiB", "TiB", "KB",
					    "MB",    "GB",   "TB",  "B",   "G",	  "M"};
	size_t n = take_number(s);

	for (size_t i = 0; n && i < COUNT(units); i++) {
		size_t space = s[n] == ' ', len = strlen(units[i]);

		if (!strncasecmp(s + n + space, units[i], len) && !isalnum((unsigned char)s[n + space + len]))
			return n + space + len;
	}
	return n;
}

/* A word of these characters, without the punctuation of the sentence behind it. */
static size_t take_word(const char *s, const char *also)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || (s[n] && strchr(also, s[n])))
		n++;
	while (n && strchr(".,:;-", s[n - 1]))
		n--;
	return n;
}

/* [2, 3], (2, 3), torch.Size([2, 3]), 10x10; what is in brackets has brackets of its own. */
static size_t take_shape(const char *s)
{
	size_t n = str_starts(s, "torch.Size") ? strlen("torch.Size") : 0;
	int open = 0;

	if (s[n] != '[' && s[n] != '(' && s[n] != '{')
		return n ? 0 : take_word(s, "x");
	for (; s[n] && n < TEXT_HOLE_MAX; n++) {
		open += strchr("[({", s[n]) != NULL;
		open -= strchr("])}", s[n]) != NULL;
		if (!open)
			return n + 1;
	}
	return 0;
}

/* cuda:0, cpu, GPU 0, device(type='cuda', index=0), or only a number. */
static size_t take_device(const char *s)
{
	size_t n = take_digits(s);

	if (n)
		return n;
	if (str_starts(s, "device("))
		return strcspn(s, ")") + (strchr(s, ')') != NULL);
	n = take_word(s, ":_");
	return n && s[n] == ' ' && isdigit((unsigned char)s[n + 1]) ? n + 1 + take_digits(s + n + 1) : n;
}

/* 12.1, v2.1.0+cu118, sm_90, (8, 0). */
static size_t take_version(const char *s)
{
	return *s == '(' ? take_shape(s) : take_word(s, ".+_-");
}

static size_t take_path(const char *s)
{
	size_t n = strcspn(s, " \n\t'\"`,;<>]");

	while (n && strchr(".:)", s[n - 1]))
		n--;
	return n;
}

static size_t take_name(const char *s)
{
	return take_word(s, "_.:/-<>[]");
}

static size_t take_text(const char *s)	/* anything: the words behind it decide */
{
	(void)s;
	return 0;
}

static const struct hole_kind {
	const char *name;
	size_t (*take)(const char *s);
} kinds[] = {
	{"n", take_number},	   {"index", take_number}, {"bytes", take_bytes}, {"shape", take_shape},
	{"device", take_device},   {"dtype", take_name},   {"name", take_name},	  {"path", take_path},
	{"version", take_version}, {"text", take_text},
};

static const struct hole_kind *find_kind(const char *name, size_t len)
{
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (strlen(kinds[i].name) == len && !strncmp(kinds[i].name, name, len))
			return &kinds[i];
	return NULL;
}

/* "{bytes:oom.request}": its kind, its name; `*end` is what follows. NULL: it is not a hole. */
static const struct hole_kind *read_hole(const char *s, struct known_hole *hole, const char **end)
{
	size_t kind, all;

	if (*s != '{' || s[1] == '{')
		return NULL;
	all = strcspn(s, "}");
	kind = strcspn(s + 1, ":}");
	*end = s + all + (s[all] == '}');
	hole->name = s + 1 + kind + (s[1 + kind] == ':');
	hole->name_len = s[1 + kind] == ':' ? (size_t)(s + all - hole->name) : 0;
	return find_kind(s + 1, kind);
}

const char *template_flaw(const char *template)
{
	struct known_hole hole;
	char words[256];
	bool after_hole = false;

	for (const char *s = template; *s;) {
		if (*s == '}' || (*s == '{' && after_hole && s[1] != '{'))
			return "holes need words between them, and {{ is a brace";
		after_hole = *s == '{' && s[1] != '{';
		if (after_hole && !read_hole(s, &hole, &s))
			return "an unknown kind of hole";
		if (!after_hole)
			s += *s == '{' ? 2 : 1;
	}
	return template_words(template, words, sizeof(words)) < 8 ? "no eight fixed characters in a row" : NULL;
}

size_t template_words(const char *template, char *words, size_t size)
{
	size_t best = 0;

	words[0] = '\0';
	while (*template) {
		size_t n = strcspn(template, "{"), skip;

		if (n > best) {
			best = n < size - 1 ? n : size - 1;
			memcpy(words, template, best);
			words[best] = '\0';
		}
		skip = template[n] == '{' && template[n + 1] == '{' ? 2 : strcspn(template + n, "}");
		template += n + skip;
		template += *template == '}';
	}
	return best;
}

static bool same_letter(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static const char *skip_spaces(const char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

static void keep_hole(struct known_holes *holes, struct known_hole hole, const char *at, size_t len)
{
	hole.at = at;
	hole.len = len;
	if (holes && holes->n < KNOWN_HOLES_MAX)
		holes->list[holes->n++] = hole;
}

/* A place to come back to: {text} takes one more character. */
struct retry {
	const char *template, *from, *at;
	struct known_hole hole;
	size_t kept, words;
};

/* One step: a hole, white space or a character. False when the text differs. */
static bool step(const char **template, const char **text, struct known_holes *holes, size_t *words, struct retry *again)
{
	struct known_hole hole = {0};
	const char *t = *template, *behind = t;
	const struct hole_kind *kind = read_hole(t, &hole, &behind);

	if (kind && kind->take == take_text) {
		*again = (struct retry){behind, *text, *text, hole, holes->n, *words};
		/* at the end it takes the rest of the line */
		keep_hole(holes, hole, *text, *behind ? 0 : strcspn(*text, "\n"));
		*text += *behind ? 0 : strcspn(*text, "\n");
		*template = behind;
		return true;
	}
	if (kind) {
		size_t n = kind->take(*text);

		keep_hole(holes, hole, *text, n);
		*text += n;
		*template = behind;
		return n > 0;
	}
	if (isspace((unsigned char)*t)) {
		if (!isspace((unsigned char)**text))
			return false;
		*text = skip_spaces(*text);
		*template = skip_spaces(t);
		++*words;
		return true;
	}
	if (!same_letter(*t, **text))
		return false;
	*template += *t == '{' ? 2 : 1;
	++*text;
	++*words;
	return true;
}

/* The words end where a word of the text does: "cannot find CUDA" is not "cannot find CUDAToolkit". */
static bool ends_well(const char *text, const char *from)
{
	return !isalnum((unsigned char)*text) || text == from || !isalnum((unsigned char)text[-1]);
}

/* Where the text goes on behind the template; NULL: it does not begin with it. */
static const char *match_template(const char *template, const char *text, struct known_holes *holes, size_t *words)
{
	struct retry again = {0};
	const char *from = text;

	holes->n = 0;
	*words = 0;
	for (;;) {
		if (!*template && ends_well(text, from))
			return text;
		if (*template && step(&template, &text, holes, words, &again))
			continue;
		/* only the last {text} can help: what it does not reach, an earlier one does not either */
		if (!again.template || !*again.at || again.at - again.from >= TEXT_HOLE_MAX)
			return NULL;
		text = ++again.at;
		template = again.template;
		holes->n = again.kept;
		*words = again.words;
		keep_hole(holes, again.hole, again.from, (size_t)(again.at - again.from));
	}
}

bool template_matches(const char *template, const char *text, struct known_holes *holes, size_t *words)
{
	struct known_holes own;

	return match_template(template, text, holes ? holes : &own, words) != NULL;
}

/* PyTorch's words for its own bugs come before the message itself. */
static const char *message_start(const char *text)
{
	static const char bug[] = "please report a bug to PyTorch.";
	const char *s = strstr(text, " INTERNAL ASSERT FAILED at ") ? strstr(text, bug) : NULL;

	s = s ? s + strlen(bug) : text;
	return skip_spaces(s);
}

#define GRAM	4	/* letters in a row, of one word */
#define GRAM_BITS	(1u << 14)

static uint32_t gram_hash(const char *s)
{
	uint32_t h = 0;

	for (int i = 0; i < GRAM; i++)
		h = h * 31 + (uint32_t)tolower((unsigned char)s[i]);
	return (h ^ h >> 11) % GRAM_BITS;
}

/* Letters that every text of the row has: from the longest words of its template. 0: it has none. */
static uint32_t row_gram(const struct known_message *m)
{
	char words[256];
	size_t n = template_words(m->template, words, sizeof(words)), run = 0;

	for (size_t i = n; i-- > 0;) {	/* from the end: the beginnings of messages are much alike */
		run = isspace((unsigned char)words[i]) ? 0 : run + 1;
		if (run == GRAM)
			return gram_hash(words + i) + 1;
	}
	return 0;
}

struct grams {
	uint64_t bits[GRAM_BITS / 64];
};

static void grams_of(struct grams *g, const char *text)
{
	memset(g, 0, sizeof(*g));
	for (size_t i = 0; text[i] && text[i + 1] && text[i + 2] && text[i + 3]; i++) {
		uint32_t h = gram_hash(text + i);

		g->bits[h / 64] |= 1ull << h % 64;
	}
}

/* Can the text have the row's words? */
static bool may_match(size_t row, const struct grams *g)
{
	static uint32_t of_row[COUNT(rows)];
	static bool known;

	for (size_t i = 0; !known && i < COUNT(rows); i++)
		of_row[i] = row_gram(&rows[i]);
	known = true;
	return !of_row[row] || (g->bits[(of_row[row] - 1) / 64] >> (of_row[row] - 1) % 64 & 1);
}

static const struct known_message *find_message(const char *text, struct known_holes *holes, bool only_logged)
{
	const struct known_message *best = NULL;
	size_t most = 0, words;
	struct known_holes found;
	struct grams grams;

	const char *plain = message_start(text), *bare = plain + strspn(plain, QUOTES);

	grams_of(&grams, plain);
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *t = rows[i].template;

		if ((only_logged && !rows[i].logged) || !may_match(i, &grams))
			continue;
		/* a message may be in quotes, as Python's KeyError has it, or begin with one */
		text = strchr(QUOTES, *t) ? plain : bare;
		if (*t != '{' && !same_letter(*t, *text))
			continue;
		if (!template_matches(t, text, &found, &words) || words <= most ||
		    !knowledge_use(KNOWLEDGE_MESSAGE, "", t))
			continue;
		best = &rows[i];
		most = words;
		if (holes)
			*holes = found;
	}
	return best;
}

/* "RuntimeError: Cannot find …" of an exception that has another one's text for a message: what follows the name. */
static const char *skip_exception(const char *text)
{
	static const char *const ends[] = {"Error", "Exception"};
	size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.");

	for (size_t i = 0; i < COUNT(ends); i++)
		if (n > strlen(ends[i]) && !strncmp(text + n - strlen(ends[i]), ends[i], strlen(ends[i])) &&
		    text[n] == ':' && text[n + 1] == ' ')
			return text + n + 2;
	return text;
}

/* What a wrapper wraps; NULL: the text is no wrapper. */
static const char *unwrap_message(const char *text)
{
	struct known_holes holes;
	size_t words;

	for (size_t i = 0; i < COUNT(wrappers); i++) {
		const char *inner = match_template(wrappers[i], skip_spaces(text), &holes, &words);

		if (inner)
			return inner;
	}
	return NULL;
}

/* The innermost one that is known: a wrapper may be a message itself, which says less. */
static const struct known_message *find_wrapped(const char *text, struct known_holes *holes, bool only_logged)
{
	const struct known_message *found = NULL;

	for (int depth = 0; text && depth < WRAPPED_MAX; depth++) {
		const struct known_message *inner = find_message(text, holes, only_logged);

		found = inner ? inner : found;
		text = unwrap_message(text);
	}
	return found;
}

const struct known_message *known_message(const char *text, struct known_holes *holes)
{
	const struct known_message *found = find_wrapped(text, holes, false);

	return found || skip_exception(text) == text ? found : known_message(skip_exception(text), holes);
}

bool known_message_logged(const char *line)
{
	return find_wrapped(line, NULL, true) != NULL;
}

static void set_hole(struct casefile *c, const struct known_hole *h)
{
	int id = fact_find(h->name, h->name_len);
	const char *value = pool_copy(c->pool, h->at, h->len);
	double number;

	if (id < 0 || fact_known(c, (enum fact_id)id))
		return;
	if (fact_type((enum fact_id)id) == TYPE_TEXT)
		fact_set_text(c, (enum fact_id)id, value);
	else if (message_bytes(value, "", &number) || message_number(value, "", &number))
		fact_set_number(c, (enum fact_id)id, number);
}

/* "required = 101376, limit = 65536" */
static const char *values_text(struct casefile *c, const struct known_holes *holes)
{
	const char *text = "";

	for (size_t i = 0; i < holes->n; i++) {
		const struct known_hole *h = &holes->list[i];

		if (h->name_len && h->len)
			text = pool_printf(c->pool, "%s%s%.*s = %.*s", text, text[0] ? ", " : "", (int)h->name_len,
					   h->name, (int)h->len, h->at);
	}
	return text;
}

void facts_from_known_message(struct casefile *c, const char *text)
{
	struct known_holes holes = {.n = 0};
	const struct known_message *m = known_message(text, &holes);

	fact_set_text(c, FACT_message_template, m ? m->template : "");
	fact_set_text(c, FACT_message_package, m ? m->package : "");
	fact_set_text(c, FACT_message_version, m ? m->version : "");
	fact_set_text(c, FACT_message_file, m ? m->file : "");
	fact_set_text(c, FACT_message_causes, m ? m->causes : "");
	fact_set_text(c, FACT_message_values, values_text(c, &holes));
	for (size_t i = 0; i < holes.n; i++)
		if (holes.list[i].name_len)
			set_hole(c, &holes.list[i]);
}
