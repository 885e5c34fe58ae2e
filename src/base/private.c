/* SPDX-License-Identifier: Apache-2.0
 * Secrets in texts (see private.h).
 *
 * Programs that use CUDA speak of tokens, keys and queries all the time, and a line of code must stay readable. So a name alone
 * says little: "token=" counts only if its value looks random, "key=" only in an address.
 */
#include "base/private.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"

#define TOKEN_LEAST 16	/* characters of a token behind its prefix; tokens are longer, words are shorter */
#define CUT_LEAST   4	/* at the end of the text: messages are recorded up to a limit */
#define TOKEN_MOST  1024	/* without a digit up to here, it is none */
#define VALUE_LEAST 6	/* of the value of SOME_TOKEN */
#define HOME_SHOWN  "/home/user"
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

static bool begins_word(const char *text, const char *s)
{
	return s == text || !in_word(s[-1]);
}

/* A JSON web token has dots. */
static bool token_goes_on(const char *s, size_t n)
{
	return in_word(s[n]) || (s[n] == '.' && s[0] == 'e');
}

/*
 * The beginnings that the issuers of tokens gave them to be found by, and how many characters they put behind them: random ones,
 * and a few have no digit among them (Hugging Face has letters only). 0: there is always a digit, or nearly so.
 */
static const struct token {
	const char *prefix;
	size_t length;
	bool dashes;	/* "-" and "_" are among the characters */
} token_kinds[] = {
	{"ghp_", 36, false},	   {"gho_", 36, false},	    {"ghu_", 36, false},     {"ghs_", 36, false},
	{"ghr_", 36, false},	   {"github_pat_", 0, true}, {"glpat-", 20, true},    {"sk-", 0, true},
	{"hf_", 34, false},	   {"api_org_", 34, false}, {"nvapi-", 0, true},     {"xox", 0, true},
	{"AKIA", 16, false},	   {"ASIA", 16, false},	    {"AIza", 35, true},	     {"eyJ", 0, true},
	{"npm_", 36, false},	   {"pypi-", 0, true},	    {"dop_v1_", 0, false},   {"rk_live_", 24, false},
	{"sk_live_", 24, false}, {"dckr_pat_", 27, true}, {"gsk_", 52, false},     {"r8_", 37, false},
};

/* Without a digit, names look much like tokens: it must be as long as a token of this kind, or longer than a word where the text was cut. */
static bool letters_are_token(const struct token *kind, const char *body, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalpha((unsigned char)body[i]) && !kind->dashes)
			return false;
	if (body[n] || kind->dashes)
		return kind->length && n >= kind->length;
	return kind->length && n >= TOKEN_LEAST;
}

static size_t token_at(const char *text, const char *s)
{
	if (s > text && isalnum((unsigned char)s[-1]))
		return 0;
	for (size_t i = 0; i < COUNT(token_kinds); i++) {
		const struct token *kind = &token_kinds[i];
		size_t n = strlen(kind->prefix), from = n;
		bool digit = false;

		if (strncmp(s, kind->prefix, n) != 0)
			continue;
		for (; token_goes_on(s, n) && (n < TOKEN_MOST || digit); n++)
			digit = digit || isdigit((unsigned char)s[n]);
		if (digit)
			return n - from >= (s[n] ? TOKEN_LEAST : CUT_LEAST) ? n : 0;
		return letters_are_token(kind, s + from, n - from) ? n : 0;
	}
	return 0;
}

/* "://user:password@host", "://token@host": what stands before the "@". */
static size_t login_at(const char *text, const char *s)
{
	size_t n, user;
	bool cut;

	if (s - text < 3 || strncmp(s - 3, "://", 3) != 0)
		return 0;
	n = strcspn(s, "@/ \"'\n");
	user = strcspn(s, ":");
	cut = !s[n] && user < n && s[user + 1 + strspn(s + user + 1, "0123456789")];	/* a number is a port */
	return s[n] == '@' || cut ? n : 0;
}

static bool looks_random(const char *s, size_t n, size_t least, const char *also)
{
	bool digit = false, letter = false;

	for (size_t i = 0; i < n; i++) {
		digit = digit || isdigit((unsigned char)s[i]);
		letter = letter || isalpha((unsigned char)s[i]);
		if (!in_word(s[i]) && !strchr(also, s[i]))
			return false;
	}
	return n >= least && digit && letter;
}

/* "?sig=…&token=…" of an address, "/t/TOKEN/" of a conda channel: `skip` bytes of it are not secret. */
static size_t query_at(const char *text, const char *s, size_t *skip)
{
	static const char *const keys[] = {"sig",     "signature", "token",  "access_token", "key",
					   "apikey",  "api_key",   "password", "pwd",	     "secret",
					   "session",
					   "auth",
					   "x-amz-signature",
					   "x-amz-security-token",
					   "x-amz-credential"};
	size_t n;

	if (!strncmp(s, "/t/", 3)) {
		*skip = 3;
		n = strcspn(s + 3, "/ \"'\n");
		return looks_random(s + 3, n, VALUE_LEAST, "") ? n : 0;
	}
	if (s == text || (s[-1] != '?' && s[-1] != '&'))
		return 0;
	n = strcspn(s, "=& \"'\n");
	*skip = n + 1;
	for (size_t i = 0; s[n] == '=' && i < COUNT(keys); i++)
		if (strlen(keys[i]) == n && strncasecmp(s, keys[i], n) == 0)
			return strcspn(s + *skip, "& \"',;)\n");
	return 0;
}

/* "Bearer TOKEN", "Basic TOKEN" */
static size_t bearer_at(const char *text, const char *s, size_t *skip)
{
	size_t n;

	*skip = !strncasecmp(s, "bearer ", 7) ? 7 : !strncasecmp(s, "basic ", 6) ? 6 : 0;
	if (!*skip || !begins_word(text, s))
		return 0;
	n = strcspn(s + *skip, " \"',;)}]\n");
	return looks_random(s + *skip, n, *skip == 7 ? VALUE_LEAST : TOKEN_LEAST, "./+=~") ? n : 0;
}

/* Does the name end with this word? "-" and "_" are the same; the word begins the name, or an underscore does. */
static bool name_ends(const char *name, size_t n, const char *word)
{
	size_t len = strlen(word);

	if (len > n || (len < n && name[n - len - 1] != '_' && name[n - len - 1] != '-'))
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = name[n - len + i];

		if (tolower((unsigned char)(c == '-' ? '_' : c)) != word[i])
			return false;
	}
	return true;
}

/* Names whose values are secrets, whatever they look like. */
static bool names_secret(const char *name, size_t n)
{
	static const char *const words[] = {
		"password",   "passwd",	       "passphrase",	"secret",	"api_key",    "apikey",
		"access_key", "secret_key",    "private_key",	"access_token", "auth_token", "session_token",
		"id_token",   "refresh_token", "client_secret", "bot_token",	"credentials"};

	for (size_t i = 0; i < COUNT(words); i++)
		if (name_ends(name, n, words[i]))
			return true;
	return false;
}

static bool is_upper(const char *name, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (islower((unsigned char)name[i]))
			return false;
	return true;
}

/* Not a value, but what a line of code says about one. */
static bool is_nothing(const char *value, size_t n)
{
	static const char *const words[] = {"None", "null", "True", "False", "str", "Optional", "bool"};

	for (size_t i = 0; i < COUNT(words); i++)
		if (strlen(words[i]) == n && !strncmp(value, words[i], n))
			return true;
	return n == 0;
}

/* `option`: it was given as --name */
static bool is_secret(const char *name, size_t n, bool option, const char *value, size_t len)
{
	if (is_nothing(value, len))
		return false;
	if (!name_ends(name, n, "token"))
		return names_secret(name, n);
	return option || names_secret(name, n) ||
	       looks_random(value, len, is_upper(name, n) ? VALUE_LEAST : TOKEN_LEAST, "/+=");
}

/* Length of a quote; inside another text it has a backslash. */
static size_t quote_at(const char *s)
{
	size_t n = *s == '\\';

	return s[n] == '"' || s[n] == '\'' ? n + 1 : 0;
}

/* "NAME=value", "NAME: value", "'name': 'value'", "--name value". */
static size_t assigned_at(const char *text, const char *s, size_t *skip)
{
	bool option = s - text >= 2 && s[-1] == '-' && s[-2] == '-';
	const char *at = s, *value;
	size_t name = 0, len;

	if (!isalpha((unsigned char)*s) || (!option && !begins_word(text, s)))
		return 0;
	while (in_word(s[name]))
		name++;
	at = s + name;
	at += quote_at(at);
	if (*at == ':' || *at == '=') {
		at++;
		at += strspn(at, " ");
	} else if (option && *at == ' ' && at[1] != '-') {
		at++;
	} else {
		return 0;
	}
	if (quote_at(at)) {
		const char end[] = {at[quote_at(at) - 1], quote_at(at) > 1 ? '\\' : '\0', '\0'};

		value = at + quote_at(at);
		len = strcspn(value, end);
	} else {
		value = at;
		len = strcspn(value, " \"',;&()[]{}\n");
	}
	*skip = (size_t)(value - s);
	return is_secret(s, name, option, value, len) ? len : 0;
}

static size_t secret_at(const char *text, const char *s, size_t *skip)
{
	size_t n;

	*skip = 0;
	if ((n = token_at(text, s)) || (n = login_at(text, s)))
		return n;
	if ((n = query_at(text, s, skip)) || (n = bearer_at(text, s, skip)) || (n = assigned_at(text, s, skip)))
		return n;
	*skip = 0;
	return strncmp(s, "-----BEGIN", 10) ? 0 : strlen(s);
}

char *private_hide_secrets(char *text, size_t *times)
{
	size_t n, skip, removed = strlen(PRIVATE_REMOVED);
	const char *s = text, *from = text;
	struct buf b = {0};

	while (*s) {
		n = secret_at(text, s, &skip);
		if (!n || !strncmp(s + skip, PRIVATE_REMOVED, removed)) {
			s++;
			continue;
		}
		if (!b.data)
			buf_init(&b, SIZE_MAX);
		buf_add(&b, from, (size_t)(s + skip - from));
		buf_adds(&b, PRIVATE_REMOVED);
		from = s = s + skip + n;
		if (times)
			(*times)++;
	}
	if (!b.data)
		return text;
	buf_adds(&b, from);
	free(text);
	return buf_take(&b);
}

/* --- homes ------------------------------------------------------------------------------------ */

/* `home` where it stands at `s`, or "/home/NAME": its length. */
static size_t home_at(const char *s, const char *home)
{
	static const char *const roots[] = {"/home/", "/Users/"};
	size_t n = home ? strlen(home) : 0;

	if (n && !strncmp(s, home, n) && !in_word(s[n]))
		return n;
	for (size_t i = 0; i < COUNT(roots); i++)
		if (!strncmp(s, roots[i], strlen(roots[i])))
			return strlen(roots[i]) + strcspn(s + strlen(roots[i]), "/: \"'\n");
	return 0;
}

char *private_hide_homes(char *text, size_t *times)
{
	const char *home = getenv("HOME"), *s = text, *from = text;
	struct buf b = {0};
	size_t n;

	home = home && home[0] == '/' && strlen(home) > 3 && strcmp(home, "/root") != 0 && strcmp(home, "/home") != 0
		       ? home
		       : NULL;
	while ((s = strchr(s, '/'))) {
		n = home_at(s, home);
		if (n <= strlen("/home/") || !strncmp(s, HOME_SHOWN, n)) {
			s++;
			continue;
		}
		if (!b.data)
			buf_init(&b, SIZE_MAX);
		buf_add(&b, from, (size_t)(s - from));
		buf_adds(&b, HOME_SHOWN);
		from = s = s + n;
		if (times)
			(*times)++;
	}
	if (!b.data)
		return text;
	buf_adds(&b, from);
	free(text);
	return buf_take(&b);
}

/* --- in place --------------------------------------------------------------------------------- */

char *private_shown(const char *text)
{
	return private_hide_secrets(xstrdup(text), NULL);
}

static char *hide_secrets(char *text, void *unused)
{
	(void)unused;
	return private_hide_secrets(text, NULL);
}

static char *hide_both(char *text, void *unused)
{
	(void)unused;
	return private_hide_homes(private_hide_secrets(text, NULL), NULL);
}

void private_hide_in(json_t *o, bool homes)
{
	json_change_texts(o, homes ? hide_both : hide_secrets, NULL);
}
