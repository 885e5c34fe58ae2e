/* SPDX-License-Identifier: Apache-2.0
 * Program startup as it was before glibc 2.34 (see portable.h).
 *
 * Since then glibc finds a program's constructors by itself. Before, the program passed a function that runs them,
 * which a new glibc still supports.
 */
#include <stddef.h>

#include "portable/portable.h"

typedef int main_fn(int, char **, char **);
typedef void init_fn(int, char **, char **);

int __libc_start_main(main_fn *run, int argc, char **argv, init_fn *init, void (*fini)(void), void (*rtld_fini)(void),
		      void *stack_end);
OLD(__libc_start_main, GLIBC_FIRST);

extern init_fn *__init_array_start[] HERE, *__init_array_end[] HERE;

static void constructors(int argc, char **argv, char **env)
{
	for (init_fn **f = __init_array_start; f < __init_array_end; f++)
		(*f)(argc, argv, env);
}

HERE int __libc_start_main(main_fn *run, int argc, char **argv, init_fn *init, void (*fini)(void),
			   void (*rtld_fini)(void), void *stack_end)
{
	return old___libc_start_main(run, argc, argv, init ? init : constructors, fini, rtld_fini, stack_end);
}
