/* SPDX-License-Identifier: Apache-2.0
 * Removes private data from a bundle (see machine.h).
 *
 * Names are replaced wherever they appear as a word, above all in paths: bundles are sent to strangers.
 */
#include <ctype.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/private.h"
#include "base/str.h"
#include "read/machine/machine.h"
#include "read/machine/variables.h"

#define NAMES_MAX 16

struct names {
	struct { char *is; const char *becomes; size_t times; } name[NAMES_MAX];
	size_t n, commands, variables, homes, secrets;
};

/* Words that are the same on every machine reveal nothing, and replacing them would garble paths. */
static bool is_plain(const char *name)
{
	static const char *const plain[] = {"root", "user", "host", "localhost", "nobody", "home",   "python", "nvidia",
					    "cuda", "lib",  "usr",  "opt",	 "ubuntu", "debian", "torch",  NULL};

	if (strlen(name) < 3)
		return true;
	for (size_t i = 0; plain[i]; i++)
		if (strcmp(plain[i], name) == 0)
			return true;
	return false;
}

static void add_name(struct names *n, const char *is, const char *becomes)
{
	if (!is || is_plain(is) || n->n == NAMES_MAX)
		return;
	for (size_t i = 0; i < n->n; i++)
		if (strcmp(n->name[i].is, is) == 0)
			return;
	n->name[n->n].is = xstrdup(is);
	n->name[n->n].times = 0;
	n->name[n->n++].becomes = becomes;
}

/* The home folder first, then the name in it: otherwise part of the path would be left. */
static void add_home(struct names *n, const char *home)
{
	if (home && home[0] == '/' && strlen(home) > 3 && strcmp(home, "/root") != 0 && strcmp(home, "/home") != 0 &&
	    strcmp(home, "/nonexistent") != 0)
		add_name(n, home, "/home/user");
}

/* From a program or a tree that may belong to someone else. */
static void find_names_of(struct names *n, const char *const *env)
{
	static const char *const users[] = {"USER", "LOGNAME", "SUDO_USER", "USERNAME"};

	add_home(n, environ_get(env, "HOME"));
	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++)
		add_name(n, environ_get(env, users[i]), "user");
	add_name(n, environ_get(env, "HOSTNAME"), "host");
}

static void find_names(struct names *n)
{
	const struct passwd *who = getpwuid(getuid());
	const char *home = getenv("HOME");
	char host[256] = "";

	*n = (struct names){.n = 0};
	if (gethostname(host, sizeof(host) - 1) == 0) {
		add_name(n, host, "host");
		host[strcspn(host, ".")] = '\0';
		add_name(n, host, "host");
	}
	add_home(n, home);
	add_home(n, who ? who->pw_dir : NULL);
	add_name(n, who ? who->pw_name : NULL, "user");
	add_name(n, getenv("USER"), "user");
	add_name(n, getenv("LOGNAME"), "user");
	add_name(n, getenv("SUDO_USER"), "user");
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* A separate word, or the end of one after "_", as in /tmp/torchinductor_name. Words with "-" are names of packages. */
static bool stands_alone(const char *text, const char *found, size_t len)
{
	if (in_word(found[len]))
		return false;
	return found[0] == '/' || found == text || !in_word(found[-1]) || (found[-1] == '_' && len > 3);
}

/* `text` is freed; the answer is the caller's. */
static char *redact_name(char *text, const char *is, const char *becomes, size_t *times)
{
	size_t len = strlen(is);
	char *found = strstr(text, is), *next;

	while (found) {
		size_t before = (size_t)(found - text);

		if (stands_alone(text, found, len)) {
			next = xasprintf("%.*s%s%s", (int)before, text, becomes, found + len);
			free(text);
			text = next;
			before += strlen(becomes);
			(*times)++;
		} else {
			before += 1;
		}
		found = strstr(text + before, is);
	}
	return text;
}

/* Arguments may contain anything: the program's name is enough. */
static void cut_commands(struct names *n, json_t *bundle)
{
	json_t *gpu, *process, *gpus = json_object_get(json_object_get(bundle, "nvml"), "gpus");
	size_t i, k;

	json_array_foreach(gpus, i, gpu) {
		json_array_foreach(json_object_get(gpu, "processes"), k, process) {
			const char *command = json_string_value(json_object_get(process, "command")), *slash;
			char *first;

			if (!command)
				continue;
			first = xasprintf("%.*s", (int)strcspn(command, " "), command);
			slash = strrchr(first, '/');
			n->commands += strlen(first) != strlen(command);
			json_object_set_new(process, "command", json_string(slash ? slash + 1 : first));
			free(first);
		}
	}
}

#define REMOVED PRIVATE_REMOVED

/* Beyond what private_hide_secrets recognizes, whatever might be one: nothing in a bundle is code that must stay readable. */

/* "https://user:password@host", "user:password@host": what stands before the "@". */
static size_t login_at(const char *text, const char *s)
{
	size_t user, n;

	if (s > text && !strchr("/ \"'=,;", s[-1]))
		return 0;
	user = strcspn(s, ":@/ \"'=,;");
	n = s[user] == ':' ? user + 1 + strcspn(s + user + 1, "@/ \"',;") : user;
	if (s[n] != '@' || n == 0)
		return 0;
	return n > user || (s - text >= 3 && !strncmp(s - 3, "://", 3)) ? n : 0;	/* a name alone only in an address */
}

/* "?sig=…&token=…" of an address, "/t/TOKEN/" of a conda channel, "Bearer TOKEN": `skip` bytes of it are not secret. */
static size_t value_at(const char *text, const char *s, size_t *skip)
{
	static const char *const keys[] = {"sig=",	"signature=",  "token=", "access_token=", "key=",      "apikey=",
					   "api_key=",	"password=",   "pwd=",	 "secret=",	  "session=",  "auth=",
					   "x-amz-signature=", "x-amz-security-token=", "bearer "};

	*skip = 3;
	if (!strncmp(s, "/t/", 3) && strstr(text, "://"))
		return strcspn(s + 3, "/ \"'") > 8 ? strcspn(s + 3, "/ \"'") : 0;
	if (s > text && in_word(s[-1]))
		return 0;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		*skip = strlen(keys[i]);
		if (strncasecmp(s, keys[i], *skip) == 0)
			return strcspn(s + *skip, "& \"',;");
	}
	return 0;
}

/* Of whatever was collected: an address in a package's metadata, the name of a file. `text` is freed. */
static char *hide_secrets(char *text, size_t *times)
{
	char *next;

	text = private_hide_secrets(text, times);
	for (size_t at = 0; text[at]; at++) {
		size_t skip = 0, n = login_at(text, text + at);

		if (!n)
			n = value_at(text, text + at, &skip);
		if (!n || !strncmp(text + at + skip, REMOVED, strlen(REMOVED)))
			continue;
		next = xasprintf("%.*s" REMOVED "%s", (int)(at + skip), text, text + at + skip + n);
		free(text);
		text = next;
		at += skip + strlen(REMOVED) - 1;
		(*times)++;
	}
	return text;
}

static char *redact_text(char *text, void *names)
{
	struct names *n = names;

	for (size_t i = 0; i < n->n; i++)
		text = redact_name(text, n->name[i].is, n->name[i].becomes, &n->name[i].times);
	return hide_secrets(private_hide_homes(text, &n->homes), &n->secrets);
}

/* By its name. Values of variables that no program of ours reads are not kept at all, so this is for the name's sake. */
static bool may_be_secret(const char *name, const char *value)
{
	static const char *const words[] = {"TOKEN",   "SECRET",     "PASS",	"CREDENTIAL", "APIKEY",
					    "API_KEY", "ACCESS_KEY", "PRIVATE", "_AUTH",      "_PWD",
					    "_PSK",    "_JWT",	     "COOKIE",	"_SIGNATURE"};
	const char *at = strstr(value, "://");

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasestr(name, words[i]))
			return true;
	return at && strchr(at, '@');
}

/* The name of an unknown variable is enough to find that it is misspelled; its value may be anything. */
static void drop_secrets(struct names *n, json_t *bundle)
{
	json_t *o = json_object_get(bundle, "variables"), *v;
	const char *key;
	void *next;

	json_object_foreach_safe(o, next, key, v) {
		bool secret = may_be_secret(key, json_string_value(v) ? json_string_value(v) : "");

		if (!secret && variables_is_known(key))
			continue;
		n->variables++;
		if (secret)
			json_object_del(o, key);
		else
			json_object_set_new(o, key, json_string(REMOVED));
	}
}

char *bundle_redact_for(json_t *bundle, const char *const *env)
{
	struct names n;
	size_t users = 0, hosts = 0;

	find_names(&n);
	find_names_of(&n, env);
	cut_commands(&n, bundle);
	drop_secrets(&n, bundle);
	json_change_texts(bundle, redact_text, &n);
	for (size_t i = 0; i < n.n; i++) {
		if (strcmp(n.name[i].becomes, "host") == 0)
			hosts += n.name[i].times;
		else
			users += n.name[i].times;
		free(n.name[i].is);
	}
	return xasprintf("user names and home folders (%zu times), host names (%zu), program arguments (%zu), "
			 "values of unknown variables and of those that may be secrets (%zu), logins and tokens (%zu)",
			 users + n.homes, hosts, n.commands, n.variables, n.secrets);
}

/* Names come from files and from the environment: nothing in them may reach the terminal as a command. */
static void list_put_plain(FILE *out, const char *text)
{
	char *copy = xstrdup(text);

	str_make_line(copy);
	fputs(copy, out);
	free(copy);
}

static void list_keys(FILE *out, const json_t *o)
{
	const char *key;
	json_t *v;
	size_t n = 0;

	json_object_foreach((json_t *)(uintptr_t)o, key, v) {
		fputs(n++ ? ", " : "", out);
		list_put_plain(out, key);
	}
	fputs(n ? "\n" : "nothing\n", out);
}

static void list_python(FILE *out, const json_t *python)
{
	const json_t *envs = json_object_get(python, "environments"), *env;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)envs, i, env) {
		const char *prefix = json_string_value(json_object_get(env, "prefix"));

		fputs("  python     ", out);
		list_put_plain(out, prefix ? prefix : "?");
		fprintf(out, ": %zu packages with their versions, where their libraries are\n",
			json_array_size(json_object_get(env, "packages")));
	}
}

char *bundle_list(const json_t *b)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return xstrdup("");
	fputs("  host       ", out);
	list_keys(out, json_object_get(b, "host"));
	fputs("  variables  ", out);
	list_keys(out, json_object_get(b, "variables"));
	fprintf(out, "  driver     what NVML and libcuda reported; %zu GPUs with their ids, state and processes (program names)\n",
		json_array_size(json_object_get(json_object_get(b, "nvml"), "gpus")));
	list_python(out, json_object_get(b, "python"));
	fprintf(out, "  code       GPU architectures in %zu libraries\n", json_array_size(json_object_get(b, "code")));
	if (json_object_get(b, "process"))
		fprintf(out, "  process    %zu libraries that it has loaded\n",
			json_array_size(json_object_get(json_object_get(b, "process"), "libraries")));
	fclose(out);
	return text;
}
