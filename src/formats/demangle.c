/* SPDX-License-Identifier: Apache-2.0
 * Readable C++ names, from libiberty, within bounds.
 *
 * A short mangled name can stand for gigabytes of text (every substitution may double it), and the
 * demangler cannot be asked to stop. It allocates nothing while it prints through a callback, so a
 * longjmp out of it when the text gets too long leaks nothing.
 */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/buf.h"
#include "formats/demangle.h"

#define MANGLED_MAX	8192		/* bounds the recursion; real CUTLASS names stay below */
#define TEXT_MAX	65536

struct job {
	struct buf text;
	jmp_buf enough;
};

static void demangle_add(const char *s, size_t n, void *arg)
{
	struct job *j = arg;

	buf_add(&j->text, s, n);
	if (j->text.full)
		longjmp(j->enough, 1);
}

static int demangle_run(struct job *j, const char *mangled, int options)
{
	if (setjmp(j->enough))
		return 0;
	return cplus_demangle_v3_callback(mangled, options, demangle_add, j);
}

char *demangle(const char *mangled)
{
	int options = DMGL_PARAMS | DMGL_ANSI;
	struct job j;

	if (mangled[0] != '_' || mangled[1] != 'Z' || strlen(mangled) > MANGLED_MAX)
		return NULL;
	buf_init(&j.text, TEXT_MAX);
	/* libiberty's own limit rejects every name above 1,024 bytes; kernels have longer ones. */
	if (demangle_run(&j, mangled, options | DMGL_NO_RECURSE_LIMIT) && j.text.len)
		return buf_take(&j.text);
	buf_release(&j.text);
	return NULL;
}
