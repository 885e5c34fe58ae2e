/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy memory`: who holds the memory of the GPU.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/opt.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/memory.h"
#include "base/banned.h"

static struct {
	bool help;
	struct memory_options o;
} given;

static const struct opt_usage usage = {
	"memory", "[options] SNAPSHOT",
	"Tells who held the memory of the GPU: totals, lines, and a chart of the time, from a file that\n"
	"torch.cuda.memory._dump_snapshot wrote.",
	"The exit status is 0, or 2 on failure.\n",
};

static const struct opt options[] = {
	{"by", 0, "WHAT", "line, function, stream or pool", NULL, &given.o.by},
	{"at", 0, "MOMENT", "peak, oom or end", NULL, &given.o.at},
	{"json", 0, NULL, "print one JSON object", &given.o.json, NULL},
	{"help", 'h', NULL, "print this", &given.help, NULL},
	{0},
};

static bool one_of(const char *word, const char *const *list)
{
	for (; word && *list && strcmp(word, *list); list++)
		;
	return !word || *list;
}

static int check(int first, int argc, char **argv, struct err *e)
{
	static const char *const by[] = {"line", "function", "stream", "pool", NULL};
	static const char *const at[] = {"peak", "oom", "end", NULL};

	if (!one_of(given.o.by, by))
		return err_set(e, -EINVAL, "--by takes line, function, stream or pool, not '%s'", given.o.by);
	if (!one_of(given.o.at, at))
		return err_set(e, -EINVAL, "--at takes peak, oom or end, not '%s'", given.o.at);
	if (argc - first != 1)
		return err_set(e, -EINVAL, "memory takes one snapshot, not %d", argc - first);
	if (!fs_exists(argv[first]))
		return err_set(e, -ENOENT, "cannot open '%s': %s", argv[first], strerror(ENOENT));
	if (!memory_is_snapshot(argv[first])) {
		err_set(e, -EINVAL, "'%s' is no memory snapshot of PyTorch", argv[first]);
		err_hint(e, "torch.cuda.memory._dump_snapshot(FILE) writes one");
		return -EINVAL;
	}
	return 0;
}

int cmd_memory(int argc, char **argv)
{
	struct err e = {0};
	int first = opt_parse(&usage, options, argc, argv, &e);

	if (first >= 0 && given.help) {
		opt_help(stdout, &usage, options);
		return cmd_finish(EXIT_NOTHING);
	}
	if (first < 0 || check(first, argc, argv, &e) != 0)
		return cmd_fail(stdout, given.o.json, &e, EXIT_TROUBLE);
	given.o.width = term_width(STDOUT_FILENO);
	return memory_of_snapshot(argv[first], &given.o);
}
