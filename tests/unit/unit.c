/* SPDX-License-Identifier: Apache-2.0
 * All unit tests in one program: unit [--list] [--exact] [--results FILE] [-j N] [PATTERN...], from the root of the repository.
 *
 * A test is GROUP/NAME: test_GROUP.c and its function. A pattern is part of that, or with * and ? all of it. Each group runs in a child of its
 * own, so that what it changes for its whole process (limits, signals, the environment) is no other's. FILE gets a line for each test.
 */
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define UNIT_RUNNER
#include "unit.h"

#define TESTS_MAX 512		/* of one group */

enum outcome { DIED, PASSED, FAILED, SKIPPED };

struct group {
	const char *name;
	int (*run)(void);
	bool leaks;
	const char *tests[TESTS_MAX];
	size_t n;
	double *began;		/* shared with the child: when each test began, and when the last one ended */
	FILE *out;
	pid_t pid;
	bool ended;
	int status;
};

static struct unit_group *files;
static struct group *groups, *current;
static size_t n_groups;
static bool exact, listing;
static char **patterns;
static FILE *results;

/* cmocka declares it under its own name, with the macro of unit.h */
int unit_run_tests(const char *name, const struct CMUnitTest *const tests, const size_t n, CMFixtureFunction setup,
		   CMFixtureFunction teardown);

/* Asked by the sanitizer at the end of a process. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return current && current->leaks;
}

void unit_add(struct unit_group *group)
{
	group->next = files;
	files = group;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool wanted(const struct group *g, const char *test)
{
	char name[512];

	snprintf(name, sizeof(name), "%s/%s", g->name, test);
	for (char **p = patterns; *p; p++) {
		if (exact ? !strcmp(*p, name) : strpbrk(*p, "*?") ? !fnmatch(*p, name, 0) : strstr(name, *p) != NULL)
			return true;
	}
	return !*patterns;
}

static const struct CMUnitTest *running;
static size_t at;

static int begin_test(void **state)
{
	const struct CMUnitTest *test = &running[at];

	current->began[at++] = now();
	return test->setup_func ? test->setup_func(state) : 0;
}

/* In the parent it only says what there is; in a child it runs what is wanted of that. */
int unit_run_tests(const char *name, const struct CMUnitTest *const tests, const size_t n, CMFixtureFunction setup,
		   CMFixtureFunction teardown)
{
	static struct CMUnitTest chosen[TESTS_MAX], timed[TESTS_MAX];
	size_t n_chosen = 0;
	int failed;

	(void)name;
	for (size_t i = 0; i < n && n_chosen < TESTS_MAX; i++) {
		if (!wanted(current, tests[i].name))
			continue;
		current->tests[n_chosen] = tests[i].name;
		timed[n_chosen] = chosen[n_chosen] = tests[i];
		timed[n_chosen++].setup_func = begin_test;
	}
	current->n = n_chosen;
	if (listing)
		return 0;
	running = chosen;
	failed = _cmocka_run_group_tests(current->name, timed, n_chosen, setup, teardown);
	current->began[n_chosen] = now();
	return failed;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct group *)a)->name, ((const struct group *)b)->name);
}

/* "test_job" of "tests/unit/test_job.c" is "job" */
static const char *name_of(const char *file)
{
	const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file, *dot = strrchr(base, '.');

	base += strncmp(base, "test_", 5) ? 0 : 5;
	return strndup(base, (size_t)(dot - base));
}

static void find_groups(void)
{
	for (struct unit_group *f = files; f; f = f->next)
		n_groups++;
	groups = calloc(n_groups, sizeof(*groups));
	for (struct unit_group *f = files; f; f = f->next)
		groups[--n_groups] = (struct group){.name = name_of(f->file), .run = f->run, .leaks = f->leaks};
	for (struct unit_group *f = files; f; f = f->next)
		n_groups++;
	xsort(groups, n_groups, sizeof(*groups), by_name);
	listing = true;
	for (size_t i = 0; i < n_groups; i++) {
		current = &groups[i];
		current->run();
	}
	listing = false;
}

static void run_child(struct group *g)
{
	current = g;
	dup2(fileno(g->out), STDOUT_FILENO);
	dup2(fileno(g->out), STDERR_FILENO);
	exit(g->run() ? 1 : 0);
}

static void start(struct group *g)
{
	g->began =
		mmap(NULL, sizeof(double) * (TESTS_MAX + 1), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	g->out = tmpfile();
	fflush(NULL);	/* or a child writes it once more */
	if (g->began == MAP_FAILED || !g->out || (g->pid = fork()) < 0) {
		perror("unit");
		exit(2);
	}
	if (!g->pid)
		run_child(g);
}

static void note(const struct group *g, size_t i, enum outcome how)
{
	static const char *const words[] = {"died", "ok", "not ok", "skipped"};
	double end = g->began[i + 1] ? g->began[i + 1] : g->began[i];

	if (results)
		fprintf(results, "%s\t%.3f\t%s/%s\n", words[how], end - g->began[i], g->name, g->tests[i]);
}

/* cmocka writes a skipped test as "not ok N # SKIP". */
static void read_outcomes(struct group *g, enum outcome *how)
{
	char *line = NULL;
	size_t size = 0, number;

	rewind(g->out);
	while (getline(&line, &size, g->out) > 0) {
		bool bad = !strncmp(line, "not ", 4);

		if (sscanf(line + (bad ? 4 : 0), "ok %zu", &number) == 1 && number && number <= g->n)
			how[number - 1] = strstr(line, "# SKIP") ? SKIPPED : bad ? FAILED : PASSED;
	}
	free(line);
}

static void show(FILE *from)
{
	char piece[4096];
	size_t n;

	rewind(from);
	while ((n = fread(piece, 1, sizeof(piece), from)) > 0)
		fwrite(piece, 1, n, stdout);
}

/* Its line, and all that it printed if something failed; adds to `total`. */
static void tell(struct group *g, size_t *total)
{
	enum outcome how[TESTS_MAX] = {DIED};
	size_t n[SKIPPED + 1] = {0};

	read_outcomes(g, how);
	for (size_t i = 0; i < g->n; i++) {
		n[how[i]]++;
		note(g, i, how[i]);
	}
	/* one that fails after its last test has failed, too: in its teardown, or a sanitizer at its end */
	n[FAILED] += n[DIED] + (g->status && !n[FAILED] && !n[DIED]);
	if (n[FAILED])
		show(g->out);
	if (n[FAILED] && WIFSIGNALED(g->status))
		printf("# %s: ended by signal %d\n", g->name, WTERMSIG(g->status));
	printf("%-28s %3zu passed, %zu failed, %zu skipped\n", g->name, n[PASSED], n[FAILED], n[SKIPPED]);
	fflush(stdout);
	for (int i = PASSED; i <= SKIPPED; i++)
		total[i] += n[i];
	fclose(g->out);
	munmap(g->began, sizeof(double) * (TESTS_MAX + 1));
}

static void wait_for_one(void)
{
	int status;
	pid_t pid = wait(&status);

	for (size_t i = 0; i < n_groups; i++) {
		if (pid > 0 && groups[i].pid == pid) {
			groups[i].ended = true;
			groups[i].status = status;
		}
	}
}

/* So many at a time, told of in their order. */
static void run_groups(int jobs, size_t *total)
{
	size_t next = 0;
	int at_work = 0;

	for (size_t told = 0; told < n_groups; told++) {
		while (groups[told].n && !groups[told].ended) {
			for (; next < n_groups && at_work < (jobs > 1 ? jobs : 1); next++) {
				if (!groups[next].n)
					continue;
				start(&groups[next]);
				at_work++;
			}
			wait_for_one();
			at_work--;
		}
		if (groups[told].n)
			tell(&groups[told], total);
	}
}

static int list(void)
{
	for (size_t i = 0; i < n_groups; i++)
		for (size_t t = 0; t < groups[i].n; t++)
			printf("%s/%s\n", groups[i].name, groups[i].tests[t]);
	return 0;
}

/* The simulated GPU lies beside the program. */
static void find_library(void)
{
	char exe[PATH_MAX] = "", path[PATH_MAX + 32];

	if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0) {
		snprintf(path, sizeof(path), "%s/sim/libcuda.so.1", dirname(dirname(exe)));
		setenv("SIM_LIB", path, 0);
	}
}

static int usage(void)
{
	fputs("usage: unit [--list] [--exact] [--results FILE] [-j N] [PATTERN...]\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{"list", 0, NULL, 'l'}, {"exact", 0, NULL, 'x'}, {"results", 1, NULL, 'r'}, {0}};
	size_t total[SKIPPED + 1] = {0};
	bool only_list = false;
	int jobs = 1, c;

	while ((c = getopt_long(argc, argv, "j:", known, NULL)) != -1) {
		if (c == 'l')
			only_list = true;
		else if (c == 'x')
			exact = true;
		else if (c == 'j')
			jobs = (int)strtol(optarg, NULL, 10);
		else if (c != 'r' || !(results = fopen(optarg, "w")))
			return usage();
	}
	patterns = argv + optind;
	find_groups();
	if (only_list)
		return list();
	find_library();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	run_groups(jobs, total);
	printf("unit: %zu passed, %zu failed, %zu skipped\n", total[PASSED], total[FAILED], total[SKIPPED]);
	if (results)
		fclose(results);
	return total[FAILED] || !total[PASSED] + total[SKIPPED];
}
