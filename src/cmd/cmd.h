/* SPDX-License-Identifier: Apache-2.0
 * Shared by all commands. Only this folder prints errors and chooses exit statuses.
 */
#ifndef CUWHY_CMD_H
#define CUWHY_CMD_H

#include <stdbool.h>
#include <stdio.h>

#ifndef CUWHY_VERSION
#define CUWHY_VERSION "unknown"		/* set by the build, from the file VERSION */
#endif

struct err;
struct opt_table;
struct trace;

enum {
	EXIT_NOTHING = 0,	/* nothing is wrong */
	EXIT_FOUND = 1,		/* something found */
	EXIT_TROUBLE = 2,	/* usage, or cuwhy's own failure */
	EXIT_NOT_STARTED = 125,	/* run: cuwhy failed before the program started */
	EXIT_NOT_RUNNABLE = 126,
	EXIT_NOT_FOUND = 127,
};

struct cmd {
	const char *name, *args, *summary;
	int (*run)(int argc, char **argv);
	const struct opt_table *table;
};

/* All commands, in the order of the help. */
extern const struct cmd commands[];
extern const size_t commands_n;

#define COMMAND(name, args, summary)                    \
	int cmd_##name(int argc, char **argv);          \
	extern const struct opt_table name##_table;
#include "cmd/commands.def"
#undef COMMAND

/* `cuwhy --version` */
int cmd_version(int argc, char **argv);

/* Not for users: prints a man page or a completion, generated from the tables above. The build calls it. */
int cmd_document(int argc, char **argv);

/* Before reading what others made: whatever it is, it takes at most half of the machine's memory; then cuwhy gives up, and says so.
 * Not for commands that start programs: those would inherit the limit. */
void cmd_bound_memory(void);

/* Reports a failure of cuwhy itself, as text or as the JSON object; returns `status`. `e` may be NULL or empty, but should not. */
int cmd_fail(FILE *out, bool json, const struct err *e, int status);

/* On stderr: what is wrong with a recording, as far as it was read; nothing if nothing is. */
void cmd_tell_damage(const struct trace *t);

/* Flushes stdout; returns `status`, or EXIT_TROUBLE if not everything could be written. */
int cmd_finish(int status);

#endif
