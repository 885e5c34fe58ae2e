/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy memory`: who holds the memory of the GPUs, in a recording or on this machine now.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/opt.h"
#include "base/progress.h"
#include "base/str.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/memory.h"
#include "input/input.h"
#include "cmd/memory_machine.h"
#include "cmd/memory_time.h"
#include "base/banned.h"

static struct {
	bool json, help;
	const char *by, *at, *top;
} given;

static const struct opt_usage usage = {
	"memory", "[options] [RECORDING | SNAPSHOT]",
	"Tells who held the memory of the GPUs in a recording (a folder, or one .cwr file): by line, by what\n"
	"it is for, by library; and how it grew. Or in a snapshot that torch.cuda.memory._dump_snapshot wrote.\n"
	"Without a file: every GPU of this machine, and who holds it.",
	.exits =
	"The exit status is 0; 1 when the recorded program failed for lack of memory; 2 on failure, and when not\n"
	"every GPU could be asked.\n",
	.examples =
	"  cuwhy memory                         who holds the GPUs of this machine now\n"
	"  cuwhy memory --by kind out/          parameters, gradients, activations, ...\n"
	"  cuwhy memory --at peak --top 30 out/ the thirty biggest lines when most was in use\n"
	"  cuwhy memory --at 90s out/           a minute and a half after the start\n",
};

static const struct opt options[] = {
	{"by", 0, "WHAT", "line (default), function, kind or library; of a snapshot line, function, stream or pool", NULL, &given.by},
	{"at", 0, "WHEN", "oom (default, if memory ran out), peak (default otherwise), end, or a time like 12.5s", NULL, &given.at},
	{"top", 'n', "N", "show N of them (15)", NULL, &given.top},
	{"json", 0, NULL, "print one JSON object", &given.json, NULL},
	{"help", 'h', NULL, "print this", &given.help, NULL},
	{0},
};

static const struct opt_words words[] = {
	{"by", "line function kind library stream pool"},
	{"at", "oom peak end"},
	{0},
};

const struct opt_table memory_table = {&usage, options, words, OPERAND_FILE};

/* The place of a word in a list; -1 when it is not there. */
static int word_of(const char *word, const char *const *list)
{
	for (int i = 0; list[i]; i++)
		if (strcmp(word, list[i]) == 0)
			return i;
	return -1;
}

static bool one_of(const char *word, const char *const *list)
{
	return !word || word_of(word, list) >= 0;
}

static int snapshot(const char *path)
{
	static const char *const bys[] = {"line", "function", "stream", "pool", NULL}, *const ats[] = {"end", "peak", "oom", NULL};
	struct memory_options o = {.json = given.json, .by = given.by, .at = given.at, .width = term_width(STDOUT_FILENO)};
	struct err e = {0};

	if (!one_of(given.by, bys))
		err_set(&e, -EINVAL, "--by takes line, function, stream or pool of a snapshot, not '%s'", given.by);
	else if (!one_of(given.at, ats))
		err_set(&e, -EINVAL, "--at takes oom, peak or end, not '%s'", given.at);
	else if (given.top)
		err_set(&e, -EINVAL, "--top is for recordings");
	return e.code ? cmd_fail(stdout, given.json, &e, EXIT_TROUBLE) : memory_of_snapshot(path, &o);
}

static int read_options(struct memory_asked *a, struct err *e)
{
	static const char *const bys[] = {"line", "function", "kind", "library", NULL};
	static const char *const ats[] = {"end", "peak", "oom", NULL};
	int by = word_of(given.by ? given.by : "line", bys), at = word_of(given.at ? given.at : "peak", ats);

	if (by < 0)
		return err_set(e, -EINVAL, "--by takes line, function, kind or library, not '%s'", given.by);
	if (at < 0 && time_parse(given.at, &a->time_ns))
		at = LEDGER_TIME;
	if (at < 0) {
		err_set(e, -EINVAL, "--at takes oom, peak, end or a time, not '%s'", given.at);
		return err_hint(e, "a time since the start: for example 12.5s, 90s or 5m");
	}
	a->top = 15;
	if (given.top && !str_u64(given.top, &a->top))
		return err_set(e, -EINVAL, "--top takes a number, not '%s'", given.top);
	a->by = (enum ledger_by)by;
	a->at = (enum ledger_at)at;
	a->at_given = given.at != NULL;
	a->width = term_width(STDOUT_FILENO);
	a->json = given.json;
	a->at_word = given.at;
	return 0;
}

int cmd_memory(int argc, char **argv)
{
	struct err e = {0};
	struct memory_asked a = {0};
	int first = opt_parse(&usage, options, argc, argv, &e);

	if (given.json)
		progress_disable();
	if (first >= 0 && given.help) {
		opt_help(stdout, &usage, options);
		return cmd_finish(EXIT_NOTHING);
	}
	if (first >= 0 && argc - first > 1)
		first = err_set(&e, -EINVAL, "memory takes one recording, not %d", argc - first);
	if (first >= 0 && first < argc && input_sniff(argv[first]) == &input_snapshot)
		return snapshot(argv[first]);
	if (first >= 0 && read_options(&a, &e))
		first = -EINVAL;
	if (first >= 0 && first == argc && (given.by || given.at || given.top))
		first = err_set(&e, -EINVAL, "--by, --at and --top need a recording");
	if (first >= 0 && first < argc && !fs_exists(argv[first]))
		first = err_set(&e, -ENOENT, "cannot open '%s': %s", argv[first], strerror(ENOENT));
	if (first < 0)
		return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	return first == argc ? memory_of_machine(given.json) : memory_of_recording(argv[first], &a);
}
