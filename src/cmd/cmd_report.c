/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy report`: a recording, a core dump, a memory snapshot or a bundle as one HTML page.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "cmd/memory.h"
#include "judge/opened.h"
#include "input/recording/recording.h"
#include "cmd/report.h"
#include "base/json_text.h"
#include "write/page.h"
#include "judge/verdict.h"
#include "base/banned.h"

#define PAGE_MAX	((size_t)64 << 20)
#define DEFAULT_OUT	"cuwhy-report.html"
#define TEXT_WIDTH	100

static struct {
	bool json, help;
	const char *out;
} given;

static const struct opt_usage usage = {
	"report", "[options] [RECORDING | DUMP | SNAPSHOT | BUNDLE]",
	"Writes one HTML page that shows a recording (a folder, or one .cwr file; without one, the newest), a GPU\n"
	"core dump, a memory snapshot of PyTorch or a bundle of the doctor. It needs no network and no other file:\n"
	"show it to a colleague.",
	.notes =
	"The page holds lines of your source code around the failure, command lines and folders: look before you\n"
	"publish it.\n",
	.exits = "The exit status is 0 when the page was written, else 2.\n",
	.examples =
	"  cuwhy report                       the newest recording, into " DEFAULT_OUT "\n"
	"  cuwhy report -o oom.html out/      a recording that 'cuwhy run --out out' left\n"
	"  cuwhy report snapshot.pickle       what torch.cuda.memory._dump_snapshot wrote\n"
	"  cuwhy report my.json               what 'cuwhy doctor --bundle my.json' wrote\n",
};

static const struct opt options[] = {
	{"out", 'o', "FILE", "where to write it (" DEFAULT_OUT "); '-' is standard output", NULL, &given.out},
	{"json", 0, NULL, "tell of the page as one JSON object", &given.json, NULL},
	{"help", 'h', NULL, "print this", &given.help, NULL},
	{0},
};

const struct opt_table report_table = {&usage, options, NULL, OPERAND_FILE};

/* --- the page ----------------------------------------------------------------------------------- */

/* What browsers without scripts show. */
static char *text_of(const struct verdict *v, const char *path)
{
	struct text_style style = {.width = TEXT_WIDTH, .recording = path};
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return xstrdup("");
	if (v && strcmp(verdict_cause(v), "none") != 0)
		report_text(f, v, &style);
	else
		fprintf(f, "cuwhy: no CUDA failure in '%s'\n", path);
	fclose(f);
	return text;
}

static int tell(const char *path, size_t bytes, const char *cause)
{
	json_t *o;

	if (given.json) {
		o = json_pack("{s:i,s:o,s:I,s:o}", "schema", 1, "page", json_text(path), "bytes", (json_int_t)bytes, "cause",
			      json_text(cause));
		json_dumpf(o, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(o);
	} else {
		printf("wrote '%s' (%zu KiB)\n", path, (bytes + 1023) / 1024);
	}
	return cmd_finish(EXIT_NOTHING);
}

int report_finish(struct page *p, const struct verdict *v, const char *path, const char *words)
{
	const char *out = given.out ? given.out : DEFAULT_OUT;
	char *text = words ? xstrdup(words) : text_of(v, path);
	struct err e = {0};
	struct buf b;
	int rc, status;

	buf_init(&b, PAGE_MAX);
	rc = page_write(p, text, &b, &e);
	progress_end();
	if (rc == 0 && strcmp(out, "-") != 0)
		rc = fs_write(out, b.data, b.len, &e);
	else if (rc == 0)
		fwrite(b.data, 1, b.len, stdout);	/* cmd_finish looks whether it went well */
	if (rc)
		status = cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	else
		status = strcmp(out, "-") ? tell(out, b.len, v ? verdict_cause(v) : NULL) : cmd_finish(EXIT_NOTHING);
	buf_release(&b);
	free(text);
	return status;
}

/* --- what is given ------------------------------------------------------------------------------ */

static int report_of(const char *path)
{
	struct err e = {0};
	int rc;

	if (given.json)
		progress_disable();
	progress_begin("making a page of '%s'", path);
	if (!fs_exists(path)) {
		err_set(&e, -ENOENT, "cannot open '%s': %s", path, strerror(ENOENT));
		return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	}
	if (memory_is_snapshot(path))
		rc = report_snapshot(path, &e);
	else if (file_is_dump(path))
		rc = report_dump(path, &e);
	else if (report_is_bundle(path))
		rc = report_bundle(path, &e);
	else
		rc = report_recording(path, &e);
	return e.code ? cmd_fail(stdout, given.json, &e, EXIT_TROUBLE) : rc;
}

int cmd_report(int argc, char **argv)
{
	struct err e = {0};
	int first = opt_parse(&usage, options, argc, argv, &e), status;
	char *path;

	if (first >= 0 && argc - first > 1)
		first = err_set(&e, -EINVAL, "report takes one recording, dump, snapshot or bundle, not %d", argc - first);
	if (first >= 0 && given.out && !*given.out)
		first = err_set(&e, -EINVAL, "-o needs the name of a file");
	if (first >= 0 && given.json && given.out && !strcmp(given.out, "-"))
		first = err_set(&e, -EINVAL, "the page and --json cannot both go to standard output");
	if (first < 0)
		return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	if (given.help) {
		opt_help(stdout, &usage, options);
		return cmd_finish(EXIT_NOTHING);
	}
	path = first < argc ? xstrdup(argv[first]) : recording_newest(&e);
	status = path ? report_of(path) : cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	free(path);
	return status;
}
