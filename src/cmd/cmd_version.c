/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy --version`: everything that a bug report about cuwhy should say about the build and the machine.
 */
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/proc.h"
#include "cmd/cmd.h"
#include "cuwhy/format.h"
#include "read/machine/host.h"
#include "show/page.h"

#ifndef CUWHY_COMMIT
#define CUWHY_COMMIT ""			/* set by the build in a git repository */
#endif
#define TEXT(x)		#x
#define NUMBER(x)	TEXT(x)
#define BUILT_WITH	NUMBER(__GLIBC__) "." NUMBER(__GLIBC_MINOR__)
#define UNKNOWN		"unknown"

/* Parts of the program that are separate files. */
static const struct part {
	const char *name, *file;
} parts[] = {
	{"recorder", "libcuwhy-rec.so"},
	{"recorder32", "lib32/libcuwhy-rec.so"},
	{"probe", "cuwhy-probe"},
	{"simulator", "sim/libcuda.so.1"},
};
#define N_PARTS (sizeof(parts) / sizeof(parts[0]))

static const char *known(const char *text)
{
	return text ? text : UNKNOWN;
}

static void version_text(const struct host *h)
{
	char *dir = proc_self_dir(), *path;
	size_t i;

	printf("cuwhy %s\n", CUWHY_VERSION);
	printf("  commit      %s\n", CUWHY_COMMIT[0] ? CUWHY_COMMIT : UNKNOWN);
	printf("  recording   format %d.%d\n", CW_MAJOR, CW_MINOR);
	printf("  page        %s\n", page_has_charts() ? "built in" : "built in, without charts");
	printf("  program     %s\n", dir ? dir : UNKNOWN);
	for (i = 0; i < N_PARTS; i++) {
		path = proc_find_part(parts[i].file);
		printf("  %-11s %s\n", parts[i].name, path ? path : "missing");
		free(path);
	}
	printf("  system      %s, %s\n", known(h->os.name), known(h->os.arch));
	printf("  kernel      %s%s\n", known(h->os.kernel), h->wsl.version > 0 ? " (WSL)" : "");
	printf("  glibc       %s, built with " BUILT_WITH "\n", known(h->os.glibc));
	printf("  driver      %s\n", h->kernel.version ? h->kernel.version : "no NVIDIA kernel module is loaded");
	free(dir);
}

static json_t *parts_json(void)
{
	json_t *o = json_object();
	char *path;
	size_t i;

	for (i = 0; i < N_PARTS; i++) {
		path = proc_find_part(parts[i].file);
		JSON_ADD(o, J_TEXT(parts[i].name, path));
		free(path);
	}
	return o;
}

static void version_json(const struct host *h)
{
	char *dir = proc_self_dir();

	json_print(stdout, JSON_OF(J_INT("schema", 1), J_TEXT("version", CUWHY_VERSION),
				   J_TEXT("commit", CUWHY_COMMIT[0] ? CUWHY_COMMIT : NULL),
				   J_VALUE("recording", JSON_OF(J_INT("major", CW_MAJOR), J_INT("minor", CW_MINOR))),
				   J_BOOL("page", true), J_BOOL("charts", page_has_charts()),
				   J_TEXT("program", dir), J_VALUE("parts", parts_json()),
				   J_VALUE("machine", JSON_OF(J_TEXT("system", h->os.name), J_TEXT("arch", h->os.arch),
						      J_TEXT("kernel", h->os.kernel), J_TEXT("glibc", h->os.glibc),
							      J_TEXT("built_with_glibc", BUILT_WITH),
							      J_TEXT("driver", h->kernel.version)))));
	free(dir);
}

int cmd_version(int argc, char **argv)
{
	struct host_from from = {.root = "", .env = (const char *const *)environ};
	bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
	struct pool pool = {0};
	struct err e = {0};
	struct host h;

	if (argc > 1 && !json) {
		err_set(&e, -1, "unexpected argument '%s' after --version", argv[1]);
		err_hint(&e, "'cuwhy --version --json' prints it as JSON");
		return cmd_fail(stderr, false, &e, EXIT_TROUBLE);
	}
	host_collect(&h, &pool, &from);
	if (json)
		version_json(&h);
	else
		version_text(&h);
	pool_release(&pool);
	return cmd_finish(EXIT_NOTHING);
}
