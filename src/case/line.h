/* SPDX-License-Identifier: Apache-2.0
 * A line of Python: whose code it is, how its file is shown, what it says.
 */
#ifndef CUWHY_LINE_H
#define CUWHY_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/pool.h"

struct source_book;

enum owner {
	OWNER_USER,
	OWNER_LIBRARY,
	OWNER_STDLIB,
	OWNER_GENERATED,
	OWNER_TORCH,
	OWNER_TRITON,
	OWNER_CUPY
};

struct place {
	const char *file;	/* as the program knew it; NULL = not known */
	const char *function;
	uint32_t line, first_line;	/* first_line: of the function, its decorators included */
	bool library;		/* not the user's own code: there was nothing better */
	uint32_t stack;		/* the stack it was found in */
	const char *text;	/* the source itself, if it is not in a file: see command_text */
};

/* A line as an answer shows it; its strings live as long as the case. `file` NULL = not known. */
struct line {
	const char *file, *function, *source;
	const char *shown;	/* the file, for people */
	uint32_t number;
	bool library;
	bool typed;		/* on the command line: the user's own, although it is in no file */
};

bool line_same(const struct line *a, const struct line *b);

/* `torch_path`: where libtorch was loaded from, may be "". */
enum owner frame_owner(const char *file, const char *torch_path);

/* The program in a Python command line, "python3 -c TEXT": its code has no file either ("<string>"), but unlike what exec,
 * dataclasses and the like create, it is the user's own. NULL when there is none. The arguments that follow are part of
 * its last line: nothing in the command line tells them apart. */
const char *command_text(const char *cmdline);

/* Is this function, which begins at `first_line`, defined in the text? `cut`: the end of the text is missing. */
bool text_defines(const char *text, bool cut, const char *function, uint32_t first_line);

/* "Model.forward" and "make.<locals>.run" -> "forward", "run": recordings hold qualified names. */
const char *function_base(const char *qualified);

/* The same file and line. */
bool place_same(const struct place *a, const struct place *b);

/* Code that torch.compile rewrote only has the line where its function begins, the decorator: move on to the
 * line of the def. */
void place_skip_decorators(struct place *p, struct source_book *from, struct pool *pool);

/* The file as people want to see it: relative to the program's working folder, when it is below it. */
const char *file_shown(const char *file, const char *cwd);

/* The text of the line, without its indentation, to be shown: quoted from its file, or from the place's own text; NULL when
 * it is not there. */
char *place_source(const struct place *p, struct source_book *from, struct pool *pool);

#endif
