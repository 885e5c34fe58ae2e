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

#include "base/mem.h"
#include "base/str.h"
#include "input/machine/machine.h"

#define NAMES_MAX 16

struct names {
	struct { char *is; const char *becomes; size_t times; } name[NAMES_MAX];
	size_t n, commands, variables, homes;
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

/* The name after /home/, whoever it is. */
static char *hide_homes(char *text, size_t *times)
{
	static const char *const roots[] = {"/home/", "/Users/"};
	char *at, *next;

	for (size_t i = 0; i < 2; i++) {
		size_t from = 0;

		while ((at = strstr(text + from, roots[i])) != NULL) {
			char *name = at + strlen(roots[i]);
			size_t len = strcspn(name, "/: \"'");

			from = (size_t)(name - text);
			if (len == 0 || (len == 4 && memcmp(name, "user", 4) == 0))
				continue;
			next = xasprintf("%.*suser%s", (int)from, text, name + len);
			free(text);
			text = next;
			(*times)++;
		}
	}
	return text;
}

static json_t *redact_text(struct names *n, const char *text)
{
	char *s = xstrdup(text);
	json_t *j;

	for (size_t i = 0; i < n->n; i++)
		s = redact_name(s, n->name[i].is, n->name[i].becomes, &n->name[i].times);
	s = hide_homes(s, &n->homes);
	j = json_string(s);
	free(s);
	return j;
}

static void redact_value(struct names *n, json_t *o)
{
	const char *key;
	json_t *v;
	size_t i;
	void *next;

	if (json_is_array(o)) {
		json_array_foreach(o, i, v) {
			if (json_is_string(v))
				json_array_set_new(o, i, redact_text(n, json_string_value(v)));
			else
				redact_value(n, v);
		}
		return;
	}
	json_object_foreach_safe(o, next, key, v) {
		if (json_is_string(v))
			json_object_set_new(o, key, redact_text(n, json_string_value(v)));
		else
			redact_value(n, v);
	}
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

static bool may_be_secret(const char *name, const char *value)
{
	static const char *const words[] = {"TOKEN",   "SECRET",     "PASS",	"CREDENTIAL", "APIKEY",
					    "API_KEY", "ACCESS_KEY", "PRIVATE", NULL};
	const char *at = strstr(value, "://");

	for (size_t i = 0; words[i]; i++)
		if (strstr(name, words[i]))
			return true;
	return at && strchr(at, '@');
}

static void drop_secrets(struct names *n, json_t *bundle)
{
	json_t *o = json_object_get(bundle, "variables"), *v;
	const char *key;
	void *next;

	json_object_foreach_safe(o, next, key, v) {
		if (!may_be_secret(key, json_string_value(v) ? json_string_value(v) : ""))
			continue;
		json_object_del(o, key);
		n->variables++;
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
	redact_value(&n, bundle);
	for (size_t i = 0; i < n.n; i++) {
		if (strcmp(n.name[i].becomes, "host") == 0)
			hosts += n.name[i].times;
		else
			users += n.name[i].times;
		free(n.name[i].is);
	}
	return xasprintf("user names and home folders (%zu times), host names (%zu), program arguments (%zu), "
			 "variables that may be secrets (%zu)",
			 users + n.homes, hosts, n.commands, n.variables);
}

/* --- what is in it ---------------------------------------------------------------------------- */

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
