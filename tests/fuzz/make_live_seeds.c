/* SPDX-License-Identifier: Apache-2.0
 * Writes seeds for fuzz_live into a folder: the memory of a small Python of each version, and texts of /proc.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/live_make.h"

static void save(const char *dir, const char *name, int first, const void *bytes, size_t n)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "wb");
	if (!f)
		exit(1);
	if (first >= 0)
		fputc(first, f);
	fwrite(bytes, 1, n, f);
	fclose(f);
}

int main(int argc, char **argv)
{
	static struct image image;
	char name[32];

	for (unsigned minor = 9; argc > 1 && minor <= 12; minor++) {
		struct remote r;
		struct pyproc p;
		uint64_t frame, thread, interpreter;

		memset(&image, 0, sizeof(image));
		remote_init(&r, image_fetch, &image);
		pyproc_at(&p, &r, IMAGE_AT, IMAGE_CODE_TYPE, image_version(minor));
		frame = image_frame(&image, &p.l, image_code(&image, &p.l, "/a/train.py", "<module>", 10), 3, 0);
		frame = image_frame(&image, &p.l, image_code(&image, &p.l, "/a/step.py", "step", 40), 2, frame);
		thread = image_thread(&image, &p.l, &p.s, 77, frame, 0);
		interpreter = image_room(&image, 512);
		image_put(&image, IMAGE_AT + p.s.head, interpreter, 8);
		image_put(&image, interpreter + p.s.threads, thread, 8);
		snprintf(name, sizeof(name), "python3.%u", minor);
		save(argv[1], name, (int)(minor - 8), image.bytes, image.used);
		remote_release(&r);
	}
	if (argc > 1) {
		static const char maps[] = "1000-2000 r--p 00000000 08:01 7 /usr/lib/libcuda.so.1\n2000-5000 r-xp 00001000 08:01 7 /usr/lib/libcuda.so.1\n";
		static const char call[] = "202 0x55aa 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd10 0x7f00ab\n";

		save(argv[1], "maps", -1, maps, sizeof(maps) - 1);
		save(argv[1], "call", -1, call, sizeof(call) - 1);
	}
	return 0;
}
