/* SPDX-License-Identifier: Apache-2.0
 * A program that failed because of its environment: the doctor checks the machine, and its finding becomes the verdict.
 *
 * Done once per run, when the first such failure is judged: all processes share the machine, and nearly always the
 * environment.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "run/run.h"
#include "read/machine/machine.h"
#include "verdict/doctor.h"

#define LIMIT_NS 2000000000u	/* the verdict must not keep the user waiting */

extern char **environ;

struct run_machine {
	struct machine machine;
	struct doctor *doctor;
	const char **env;
};

/* The program's environment, without what makes it load the recorder. */
static const char **program_environment(void)
{
	const char **env;
	size_t n = 0, kept = 0;

	while (environ[n])
		n++;
	env = xcalloc(n + 1, sizeof(*env));
	for (size_t i = 0; i < n; i++)
		if (!str_starts(environ[i], "LD_PRELOAD=") && !str_starts(environ[i], "CUWHY_"))
			env[kept++] = environ[i];
	return env;
}

static bool named_python(const char *path)
{
	const char *slash = strrchr(path, '/');

	return str_starts(slash ? slash + 1 : path, "python");
}

/* The program's file, found in PATH if it has no slash; owned by the caller, NULL if it is not Python. */
static char *find_python(const char *word)
{
	return named_python(word) ? env_find_program(word) : NULL;
}

/* The interpreter of the process that failed, otherwise that of the program we started. */
static char *python_of(const struct judge *j, const struct process *p)
{
	char *word = xasprintf("%.*s", p->command ? (int)strcspn(p->command, " ") : 0, p->command ? p->command : "");
	char *path = find_python(word);

	free(word);
	return path ? path : find_python(j->store->argv[0]);
}

void judge_machine(struct judge *j, struct process *p)
{
	if (!verdict_wants_machine(p->verdict))
		return;
	if (!j->machine) {
		char *python = python_of(j, p);
		struct machine_from from = {.root = "", .python = python, .limit_ns = LIMIT_NS};

		j->machine = xcalloc(1, sizeof(*j->machine));
		j->machine->env = program_environment();
		from.environ = j->machine->env;
		machine_collect(&j->machine->machine, &from);
		j->machine->doctor = doctor_judge(&j->machine->machine);
		free(python);
	}
	verdict_adopt(p->verdict, j->machine->doctor);
}

void judge_machine_release(struct judge *j)
{
	if (!j->machine)
		return;
	doctor_free(j->machine->doctor);
	machine_release(&j->machine->machine);
	free(j->machine->env);
	free(j->machine);
	j->machine = NULL;
}
