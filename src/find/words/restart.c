/* SPDX-License-Identifier: Apache-2.0
 * Commands, statements and sentences that start a program again (see restart.h).
 */
#include "find/words/restart.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/needles.h"
#include "base/str.h"
#include "read/text/exception.h"
#include "read/text/line.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define PROMPT_WORDS	4	/* "mira@box MINGW64 ~/sd $" */
#define SENTENCE_MAX	400

static const char *skip_spaces(const char *s)
{
	return s + strspn(s, " ");
}

static const char *skip_word(const char *s)
{
	return skip_spaces(s + strcspn(s, " "));
}

static bool word_is(const char *s, const char *const *list, size_t n)
{
	size_t len = strcspn(s, " ");

	for (size_t i = 0; i < n; i++)
		if (strlen(list[i]) == len && !strncmp(s, list[i], len))
			return true;
	return false;
}

/* "(base) ", "(venv) (main) " */
static const char *skip_environments(const char *s)
{
	while (*s == '(' && strcspn(s, " )") < 40 && s[strcspn(s, " )")] == ')')
		s = skip_spaces(s + strcspn(s, " )") + 1);
	return s;
}

/* "mira@box:~/sd$ ", "[mira@box sd]$ ", "mira@box sd % ", "~/sd$ ", "/workspace# ": what follows. */
static const char *skip_bash(const char *s)
{
	size_t first = strcspn(s, " ");
	int words = memchr(s, '@', first) ? PROMPT_WORDS : *s == '~' || *s == '/' ? 1 : 0;

	for (; words > 0 && *s; words--) {
		size_t len = strcspn(s, " ");

		if (len && s[len] && strchr("$#%>", s[len - 1]))
			return skip_spaces(s + len);
		s = skip_word(s);
	}
	return NULL;
}

/* "C:\Users\x>", "PS D:\x> " */
static const char *skip_windows(const char *s)
{
	const char *end;

	s += str_starts(s, "PS ") ? 3 : 0;
	if (!isalpha((unsigned char)s[0]) || s[1] != ':' || s[2] != '\\')
		return NULL;
	end = strchr(s, '>');
	return end ? skip_spaces(end + 1) : NULL;
}

/* "➜  sd git:(main) ✗ " */
static const char *skip_arrow(const char *s)
{
	static const char arrow[] = "\xe2\x9e\x9c ", cross[] = "\xe2\x9c\x97 ";

	if (!str_starts(s, arrow))
		return NULL;
	s = skip_word(skip_spaces(s + strlen(arrow)));
	if (str_starts(s, "git:("))
		s = skip_word(s);
	return str_starts(s, cross) ? skip_spaces(s + strlen(cross)) : s;
}

/* What follows a shell's prompt; NULL: there is none. */
static const char *skip_prompt(const char *s)
{
	static const char *const plain[] = {"$ ", "% ", "\xe2\x9d\xaf ", "\xce\xbb "};
	const char *after;

	s = skip_environments(s);
	for (size_t i = 0; i < COUNT(plain); i++)
		if (str_starts(s, plain[i]))
			return skip_spaces(s + strlen(plain[i]));
	after = skip_bash(s);
	if (!after)
		after = skip_windows(s);
	return after ? after : skip_arrow(s);
}

/* "CUDA_VISIBLE_DEVICES=0 sudo time python …": the program's name. */
static const char *skip_wrappers(const char *s)
{
	static const char *const wrappers[] = {"sudo", "time", "nohup", "env", "exec", "set", "&&"};

	for (;;) {
		size_t name = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

		if ((name && s[name] == '=') || word_is(s, wrappers, COUNT(wrappers)))
			s = skip_word(s);
		else
			return s;
	}
}

static const char *base_name(const char *s)
{
	size_t len = strcspn(s, " ");

	for (size_t i = len; i-- > 0;)
		if (s[i] == '/' || s[i] == '\\')
			return s + i + 1;
	return s;
}

/* Commands that look at a machine, change it, or move around: what they print belongs to the failure before them. */
static bool only_looks(const char *s)
{
	static const char *const tools[] = {
		"apt",	   "apt-get", "aws",	  "brew",   "cat",   "cd",   "chmod", "chown", "clear",	   "conda",
		"cp",	   "cuwhy",   "curl",	  "df",	    "dir",   "dmesg", "dnf",   "dpkg",  "du",	   "echo",
		"emacs",   "exit",    "export",	  "file",   "find",  "free", "g++",   "gcc",   "gedit",	   "git",
		"grep",	   "head",    "htop",	  "id",	    "journalctl", "kill", "killall", "ldconfig", "ldd", "less",
		"ln",	    "ls",	"lsmod",      "lspci",	  "mamba",   "micromamba", "mkdir",	"modinfo",
		"modprobe", "module",	"mv",	      "nano",	  "nm",	     "notepad",	   "nvcc",	"nvidia-smi",
		"nvtop",    "pip",	"pip3",	      "printenv", "ps",	     "pwd",	   "reboot",	"rm",
		"rmmod",    "rocm-smi", "sed",	      "source",	  "squeue",  "ssh",	   "systemctl", "tail",
		"top",	    "type",	"uname",      "unset",	  "unzip",   "vi",	   "vim",	"watch",
		"wget",	   "where",   "which",	  "whoami", "yum",
	};

	return word_is(s, tools, COUNT(tools)) || strstr(s, "nvidia-smi") || strstr(s, "collect_env") ||
	       strstr(s, "-m pip") || strstr(s, "setup.py") || strstr(s, "--version") || strstr(s, "uv pip ") ||
	       str_starts(s, "uv add ") || strstr(s, "docker pull") || strstr(s, "docker ps") ||
	       strstr(s, "docker info");
}

static bool starts_program(const char *command)
{
	const char *s = base_name(skip_wrappers(command));

	return (isalpha((unsigned char)*s) || *s == '.') && !only_looks(s);
}

/* Without a prompt: only what starts Python programs, with the program. */
static bool is_bare_command(const char *s)
{
	static const char *const starters[] = {"python",    "python3", "torchrun", "accelerate", "deepspeed",
					       "srun",	    "mpirun",  "mpiexec",  "python.exe", "python3.exe"};
	const char *name = base_name(skip_wrappers(s));

	if (!word_is(name, starters, COUNT(starters)) || only_looks(name) || (*s && strchr(":.?!,", s[strlen(s) - 1])))
		return false;
	return strstr(name, ".py") || strstr(name, " -m ") || strstr(name, " launch ") || str_starts(name, "torchrun ");
}

static bool is_command(const char *s)
{
	const char *command = skip_prompt(s);

	if (command)
		return starts_program(command[0] == '!' ? command + 1 : command);
	s += *s == '!';			/* a notebook's */
	s += str_starts(s, "+ ") ? 2 : 0;	/* set -x */
	return is_bare_command(s);
}

/* A cell of a notebook that failed: "RuntimeError     Traceback (most recent call last)". */
static bool begins_output(struct restarts *r, const char *s)
{
	size_t name = strcspn(s, " ");
	bool chained = r->chained;

	if (*s)
		r->chained = str_starts(s, "During handling of the above") || str_starts(s, "The above exception was");
	return !chained && exception_name(s, name) && str_starts(skip_word(s), "Traceback (most recent call last)");
}

static enum restart statement(struct restarts *r, const char *s)
{
	unsigned long cell;
	bool again;
	char *end;

	if (begins_output(r, s))
		return RESTART_STATEMENT;
	if (str_starts(s, ">>> "))
		return s[4] == '!' ? RESTART_PROGRAM : RESTART_STATEMENT;
	if (!str_starts(s, "In [") || !isdigit((unsigned char)s[4]))
		return RESTART_NOT;
	cell = strtoul(s + 4, &end, 10);
	if (!str_starts(end, "]:"))
		return RESTART_NOT;
	s = skip_spaces(end + 2);
	if (*s == '!')
		return is_bare_command(s + 1) ? RESTART_PROGRAM : RESTART_NOT;
	again = cell < r->cell;
	r->cell = cell;
	return again ? RESTART_PROGRAM : RESTART_STATEMENT;
}

static bool is_told(const struct text_line *line)
{
	static const char *const told[] = {
#define MARK_TRIED_AGAIN(words) words,
#include "kb/text_marks.def"
	};

	const char *s = line->text + strspn(line->text, " *_#");	/* "**EDIT:** now …" */

	if (line->len > SENTENCE_MAX || line->indent > 3)
		return false;
	for (size_t i = 0; i < COUNT(told); i++)
		if (needle_matches(told[i], s, strlen(s)))
			return true;
	return false;
}

enum restart restart_line(struct restarts *r, const struct text_line *line, bool failed)
{
	const char *s = line_words(line);
	enum restart kind = statement(r, s);

	if (kind || !failed)
		return failed ? kind : RESTART_NOT;
	if (is_command(s))
		return RESTART_PROGRAM;
	return is_told(line) ? RESTART_TOLD : RESTART_NOT;
}
