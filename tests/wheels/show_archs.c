/* SPDX-License-Identifier: Apache-2.0
 * Shows for check_archs.py what cuwhy finds in a library and what its table says about a wheel:
 *   show_archs library FILE
 *   show_archs wheel 2.7.1 12.6 x86_64|aarch64
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "compat/compat.h"
#include "formats/fatbin.h"

static void show_list(const char *what, const struct fatbin *f, bool general)
{
	struct buf text;

	buf_init(&text, 65536);
	fatbin_archs(f, general, &text);
	printf("%s %s\n", what, text.data ? text.data : "");
	buf_release(&text);
}

static int show_library(const char *path)
{
	static const int devices[] = {37, 52, 61, 70, 75, 80, 86, 89, 90, 100, 103, 120, 121};
	struct timespec from, to;
	struct err e = {0};
	struct fatbin *f;

	clock_gettime(CLOCK_MONOTONIC, &from);
	f = fatbin_read(path, &e);
	clock_gettime(CLOCK_MONOTONIC, &to);
	if (!f) {
		fprintf(stderr, "%s\n", e.msg);
		return 1;
	}
	show_list("general", f, true);
	show_list("extra", f, false);
	printf("binaries %u %u\n", f->binaries, f->general);
	printf("damage %s\n", f->why);
	printf("ms %.1f\n", (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6);
	/* a driver of CUDA 13.0: none of the wheels has PTX that is newer */
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		printf("covers %d %d\n", devices[i], (int)fatbin_covers(f, devices[i], 13000).cover);
	fatbin_free(f);
	return 0;
}

static int show_wheel(const char *version, const char *cuda, const char *machine)
{
	bool arm = strcmp(machine, "aarch64") == 0;
	const struct compat_wheel *w;
	char *end;
	long major = strtol(cuda, &end, 10), minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;

	w = compat_wheel(version, (int)(major * 1000 + minor * 10), arm ? COMPAT_AARCH64 : COMPAT_X86_64);
	if (!w || !w->archs)
		return 1;
	printf("%s\n", w->archs);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "library") == 0)
		return show_library(argv[2]);
	if (argc == 5 && strcmp(argv[1], "wheel") == 0)
		return show_wheel(argv[2], argv[3], argv[4]);
	fprintf(stderr, "usage: show_archs library FILE | wheel VERSION CUDA MACHINE\n");
	return 2;
}
