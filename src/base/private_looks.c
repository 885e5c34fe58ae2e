/* SPDX-License-Identifier: Apache-2.0
 * Secrets that are recognized by their shape (see private_parts.h).
 */
#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/private_name.h"
#include "base/private_parts.h"

#define TOKEN_LEAST 16	/* characters of a token behind its prefix; tokens are longer, words are shorter */
#define CUT_LEAST   4	/* at the end of the text: messages are recorded up to a limit */
#define TOKEN_MOST  1024	/* without a digit up to here, it is none */
#define VALUE_LEAST 6	/* of what stands behind "Bearer" */
#define COMMAND_FAR 160 /* bytes between a command and its option */
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool begins_word(const char *text, const char *s)
{
	return s == text || !private_in_word(s[-1]);
}

/* A JSON web token has dots. */
static bool token_goes_on(const char *s, size_t n)
{
	return private_in_word(s[n]) || (s[n] == '.' && s[0] == 'e');
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
	size_t n, user, host;
	bool cut, named;

	if (s - text < 3 || strncmp(s - 3, "://", 3) != 0)
		return 0;
	host = strcspn(s, "@/ \"'\n");
	user = strcspn(s, ":@/ \"'\n");
	named = s[user] == ':' && s[user + 1 + strspn(s + user + 1, "0123456789")] != '/';	/* a number is a port */
	n = named ? strcspn(s, "@ \"'\n") : host;	/* people forget to write "%2F" in a password */
	cut = !s[n] && named && s[user + 1 + strspn(s + user + 1, "0123456789")];
	return s[n] == '@' || cut ? (cut ? host : n) : 0;
}

/* "weights-only-by-default-2": words, as in the addresses of forums */
static bool is_title(const char *s, size_t n)
{
	unsigned words = 0, letters = 0;

	for (size_t i = 0; i <= n; i++) {
		letters = i < n && isalpha((unsigned char)s[i]) ? letters + 1 : 0;
		words += letters == 3;
	}
	return words >= 3 && memchr(s, '-', n);
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
		return private_random(s + 3, n, VALUE_LEAST, "") && !is_title(s + 3, n) ? n : 0;
	}
	if (s == text || (s[-1] != '?' && s[-1] != '&'))
		return 0;
	n = strcspn(s, "=& \"'\n");
	*skip = n + 1;
	for (size_t i = 0; s[n] == '=' && i < COUNT(keys); i++)
		if (strlen(keys[i]) == n && strncasecmp(s, keys[i], n) == 0)
			return s[*skip] == '{' || !strncmp(s + *skip, "%s", 2) ? 0 : strcspn(s + *skip, "& \"',;)\n");
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
	return private_random(s + *skip, n, *skip == 7 ? VALUE_LEAST : TOKEN_LEAST, "./+=~") ? n : 0;
}

/* "curl -u user:password", "sshpass -p password", "mysql -ppassword": options whose meaning only the command tells. */
static size_t command_option_at(const char *text, const char *s, size_t *skip)
{
	static const struct {
		const char *command, *option;
		bool login;	/* user:password */
	} options[] = {
		{"curl", "-u ", true},	     {"curl", "--user ", true},	  {"wget", "--http-user ", true},
		{"sshpass", "-p ", false},   {"sshpass", "-p", false},	  {"mysql", "-p", false},
		{"mysqldump", "-p", false},  {"mysqladmin", "-p", false}, {"docker login", "-p ", false},
		{"wandb login", " ", false},
	};
	size_t room = (size_t)(s - text) < COMMAND_FAR ? (size_t)(s - text) : COMMAND_FAR, n;
	char before[COMMAND_FAR + 1];

	if ((*s != '-' && *s != ' ') || (s > text && s[-1] != ' ' && *s == '-'))
		return 0;
	memcpy(before, s - room, room);
	before[room] = '\0';
	for (size_t i = 0; i < COUNT(options); i++) {
		const char *found = strncmp(s, options[i].option, strlen(options[i].option))
					    ? NULL
					    : strstr(before, options[i].command);

		if (!found || strchr(found, '\n') || (*s == ' ' && found[strlen(options[i].command)]))
			continue;
		*skip = strlen(options[i].option);
		*skip += strspn(s + *skip, "\"'");
		n = strcspn(s + *skip, " \t\"'\n");
		if (s[*skip] == '-' || (options[i].login && !memchr(s + *skip, ':', n)))
			return 0;
		return n;
	}
	return 0;
}

#define LABEL_MOST 64	/* "-----BEGIN OPENSSH PRIVATE KEY-----" has 35 bytes */

/* From "-----BEGIN … KEY-----" to its end, which may have been cut off. */
static size_t key_block_at(const char *s)
{
	const char *end, *line;
	size_t n;

	if (strncmp(s, "-----BEGIN", 10) != 0)
		return 0;
	n = strnlen(s, LABEL_MOST);
	line = memchr(s, '\n', n);
	end = memmem(s, line ? (size_t)(line - s) : n, "KEY", 3);
	if (!end)
		return 0;
	end += strspn(end, "KEY BLOCK-");
	if (*end == '"' || *end == '\'')
		return 0;	/* the beginning alone, in code that looks for it */
	end = strstr(end, "-----END");
	return end ? (size_t)(end - s) : strlen(s);
}

size_t private_looks_at(const char *text, const char *s, size_t *skip)
{
	size_t n;

	*skip = 0;
	if (isalpha((unsigned char)*s) && (n = token_at(text, s)))
		return n;
	if (s > text && s[-1] == '/' && (n = login_at(text, s)))
		return n;
	if ((*s == '/' || isalpha((unsigned char)*s)) && (n = query_at(text, s, skip)))
		return n;
	if ((*s == 'b' || *s == 'B') && (n = bearer_at(text, s, skip)))
		return n;
	if ((*s == '-' || *s == ' ') && (n = command_option_at(text, s, skip)))
		return n;
	*skip = 0;
	return *s == '-' ? key_block_at(s) : 0;
}
