/* SPDX-License-Identifier: Apache-2.0
 * Names of secrets and their values (see private_name.h).
 */
#include "base/private_name.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define NAME_MOST	96	/* the end of a longer name says enough */
#define MIXED_LEAST	6
#define RANDOM_LEAST	8
#define LONG_LEAST	16
#define LONG_TURNS	3	/* of a word, at most two: "qconv2d_binary" */
#define SIGNS_LEAST	4	/* of a password without letters and digits */
#define DIGITS_LEAST	4	/* of a number that is a password */
#define COUNT(list)	(sizeof(list) / sizeof((list)[0]))

bool private_in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

struct kinds {
	bool lower, upper, digit;
	unsigned turns;	/* from letters to digits and back */
};

static struct kinds kinds_of(const char *s, size_t n)
{
	struct kinds k = {0};
	char before = '\0';

	for (size_t i = 0; i < n; i++) {
		char now = isdigit((unsigned char)s[i]) ? '0' : isalpha((unsigned char)s[i]) ? 'a' : '\0';

		k.digit |= now == '0';
		k.lower |= islower((unsigned char)s[i]) != 0;
		k.upper |= isupper((unsigned char)s[i]) != 0;
		k.turns += now && before && now != before;
		before = now;
	}
	return k;
}

bool private_random(const char *s, size_t n, size_t least, const char *also)
{
	struct kinds k = kinds_of(s, n);

	for (size_t i = 0; i < n; i++)
		if (!private_in_word(s[i]) && !strchr(also, s[i]))
			return false;
	return n >= least && k.digit && (k.lower || k.upper);
}

/* "transformer_block_12" and "float16" have a digit, too; what chance made changes more often. */
static bool is_made_by_chance(const char *s, size_t n, size_t least)
{
	struct kinds k = kinds_of(s, n);

	if (memchr(s, '.', n))	/* "layers.0.conv2" */
		return private_random(s, n, LONG_LEAST, "+/=.") && k.lower && k.upper;
	return private_random(s, n, least, "+/=") && (k.turns >= 2 || (k.lower && k.upper));
}

static bool is_path(const char *s, size_t n)
{
	return n &&
	       (s[0] == '/' || s[0] == '~' || !strncmp(s, "./", 2) || !strncmp(s, "../", 3) || memmem(s, n, "://", 3));
}

static bool is_mixed(const char *s, size_t n)
{
	struct kinds k = kinds_of(s, n);

	if (n < MIXED_LEAST || !k.digit || !(k.lower || k.upper) || is_path(s, n))
		return false;
	return !memchr(s, ' ', n) && !strchr("<[{(", s[0]);	/* a sentence, "<|image_1|>" */
}

/* "***", "{}", crosses: nothing, or what was put in its place. */
static bool says_nothing(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strchr("*.-_ {}%<>[]()\\", s[i]) && (n < SIGNS_LEAST - 1 || !strchr("xX", s[i])))
			return n < SIGNS_LEAST && !isalnum((unsigned char)s[i]);
	return true;
}

/* Not a value, but what a line of code says about one. */
static bool is_nothing(const char *value, size_t n)
{
	static const char *const words[] = {"None", "none", "null",    "nil",  "True",  "False", "true",   "false",
					    "str",  "Str",  "Optional", "bool", "bytes", "int",   "string", "String",
					    "Any",  "not",  "self",    "is",   "typing", "Union", "List",  "Dict"};

	for (size_t i = 0; i < COUNT(words); i++)
		if (strlen(words[i]) == n && !strncmp(value, words[i], n))
			return true;
	return n == 0;
}

static bool is_short_number(const char *value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isdigit((unsigned char)value[i]))
			return false;
	return n < DIGITS_LEAST;
}

/* "GITHUB_TOKEN" is where it is, not what it is. */
static bool names_one(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalpha((unsigned char)s[i]) && s[i] != '_')
			return false;
	return memchr(s, '_', n) && private_name(s, n, false) != SECRECY_NEVER;
}

bool private_value(enum secrecy how, const char *value, size_t n, bool literal)
{
	if (says_nothing(value, n) || is_nothing(value, n) || names_one(value, n) ||
	    (!literal && is_short_number(value, n)))
		return false;
	switch (how) {
	case SECRECY_LONG:
		return is_made_by_chance(value, n, LONG_LEAST) && kinds_of(value, n).turns >= LONG_TURNS &&
		       !memchr(value, '.', n);
	case SECRECY_RANDOM:
		return is_made_by_chance(value, n, RANDOM_LEAST) || private_random(value, n, LONG_LEAST, "+/=");
	case SECRECY_MIXED:
		return is_mixed(value, n);
	case SECRECY_ALWAYS:
		return true;
	case SECRECY_NEVER:
		break;
	}
	return false;
}

/* dbPassword, DB-PASSWORD, db_password2: "db_password". */
static size_t plain_name(const char *name, size_t n, char *out)
{
	size_t skip = n > NAME_MOST ? n - NAME_MOST : 0, len = 0;

	for (size_t i = skip; i < n; i++) {
		bool up = isupper((unsigned char)name[i]) != 0, after = i > skip && private_in_word(name[i - 1]),
		     lower_before = after && (islower((unsigned char)name[i - 1]) || isdigit((unsigned char)name[i - 1])),
		     last_upper = after && isupper((unsigned char)name[i - 1]) && i + 1 < n &&
				  islower((unsigned char)name[i + 1]);

		if (up && (lower_before || last_upper))
			out[len++] = '_';
		out[len++] = name[i] == '-' ? '_' : (char)tolower((unsigned char)name[i]);
	}
	while (len && (isdigit((unsigned char)out[len - 1]) || out[len - 1] == '_'))
		len--;
	out[len] = '\0';
	return len;
}

/* Where the word ends in the name, behind one letter for more than one of them; 0: it is not in it. `last`: at its end. */
static size_t word_in(const char *name, const char *word, bool last)
{
	size_t n = strlen(word), end;

	for (const char *s = name; (s = strstr(s, word)); s++) {
		end = (size_t)(s - name) + n;
		end += name[end] == 's';
		if ((s == name || s[-1] == '_' || !strcmp(word, "password")) &&
		    (last ? !name[end] : !name[end] || name[end] == '_'))
			return end;
	}
	return 0;
}

static size_t any_in(const char *name, const char *const *words, size_t count, bool last)
{
	size_t end = 0;

	for (size_t i = 0; !end && i < count; i++)
		end = word_in(name, words[i], last);
	return end;
}

/* Names whose values are secrets, whatever they look like. */
static const char *const secret_words[] = {
	"password", "passwd", "passphrase", "passcode", "pwd", "secret", "credential", "creds", "authorization", "jwt",
	"db_pass",	  "user_pass",	      "smtp_pass",   "apikey",	      "authtoken",
	"accesstoken",	  "secretkey",	      "dbpassword",  "userpassword",  "clientsecret",
	"api_key",	  "access_key",	      "secret_key",  "private_key",   "signing_key",
	"encryption_key", "account_key",      "auth_key",    "master_key",    "client_key",
	"shared_key",	  "subscription_key", "service_key", "deploy_key",    "write_key",
	"hmac_key",	  "jwt_key",	      "ssh_key",     "aes_key",	      "wandb_key",
	"openai_key",	  "license_key",      "accountkey",  "access_token",  "auth_token",
	"session_token",  "security_token",   "id_token",    "refresh_token", "bot_token",
	"bearer_token",	  "api_token",	      "hf_token",    "hub_token",     "face_token",
	"github_token",	  "gitlab_token",     "gh_token",    "slack_token",   "personal_token",
	"oauth_token", "csrf_token", "wandb_token", "private_token", "deploy_token", "login_token",
};

/* "token" with one of these is a word of a text, or a number of them. */
static const char *const text_words[] = {
	"pad",	 "padding", "eos",     "bos",	  "eot",      "eod",	   "unk",	"sep",	  "cls",
	"mask",	 "special", "image",   "video",	  "audio",    "vision",	   "speech",	"num",	  "max",
	"min",	 "new",	    "next",    "prev",	  "previous", "start",	   "end",	"begin",  "stop",
	"first", "last",    "current", "tool",	  "think",    "separator", "delimiter", "extra",  "additional",
	"input", "output",  "target",  "vocab",	  "added",    "text",	   "word",	"line",	  "n",
	"per",	 "batch",   "decoder", "encoder", "prompt",   "suffix",	   "prefix",	"middle", "fim",
	"sot",	 "blank",   "class",   "object",
};

/* What follows makes it something about a secret. */
static const char *const about_words[] = {
	"file",	  "path",   "name",	"type",	    "url",	"uri",	 "len",	    "length",	"id",
	"index",  "field",  "header",	"env",	    "var",	"count", "format",  "regex",	"pattern",
	"prefix", "suffix", "policy",	"prompt",   "help",	"error", "expired", "required", "class",
	"fn",	  "func",   "callback", "manager",  "provider", "size",	 "dir",	    "key",	"list",
	"map",	  "stream", "scheme",	"location", "padding",	"mask",	 "embed",   "label",
};

static bool is_upper(const char *name, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (islower((unsigned char)name[i]))
			return false;
	return true;
}

static enum secrecy of_token(const char *plain, bool upper, bool option)
{
	if (any_in(plain, text_words, COUNT(text_words), false))
		return SECRECY_NEVER;
	return option ? SECRECY_ALWAYS : upper ? SECRECY_MIXED : SECRECY_RANDOM;
}

/* Most words are no names of secrets, and can be told from those by three letters. */
static bool may_be_one(const char *name, size_t n)
{
	static const char *const parts[] = {"tok", "key", "pas", "pwd", "sec", "cre", "coo", "jwt", "aut"};

	for (size_t i = 0; i + 3 <= n; i++)
		for (size_t k = 0; strchr("tkpscjaTKPSCJA", name[i]) && k < COUNT(parts); k++)
			if (!strncasecmp(name + i, parts[k], 3))
				return true;
	return false;
}

enum secrecy private_name(const char *name, size_t n, bool option)
{
	static const char *const token[] = {"token"}, *const key[] = {"key", "auth"}, *const cookie[] = {"cookie"};
	char plain[2 * NAME_MOST + 1];
	size_t end;

	if (!may_be_one(name, n) || !plain_name(name, n, plain))
		return SECRECY_NEVER;
	if (any_in(plain, secret_words, COUNT(secret_words), true))
		return n == 3 && is_upper(name, n) ? SECRECY_NEVER : SECRECY_ALWAYS;	/* PWD is a folder */
	if (any_in(plain, cookie, 1, true))
		return SECRECY_MIXED;
	if (any_in(plain, token, 1, true))
		return of_token(plain, is_upper(name, n), option);
	if (any_in(plain, key, COUNT(key), true))
		return option ? SECRECY_MIXED : SECRECY_LONG;
	end = any_in(plain, secret_words, COUNT(secret_words), false);
	if (!end || any_in(plain + end, about_words, COUNT(about_words), true))
		return SECRECY_NEVER;
	return SECRECY_MIXED;
}
