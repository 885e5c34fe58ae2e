/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as what a Python environment is read from. The first byte chooses the reader.
 *
 * Built by libFuzzer (tests/fuzz/fuzz.sh), and with driver.c as a plain program over the corpus.
 */
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/elf_file.h"
#include "read/machine/pyenv/loader_session.h"
#include "read/machine/pyenv/packaging.h"
#include "read/machine/pyenv/torch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;	/* what was read must have been read */

static void use_cache(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"libcuda.so.1", "libx.so.1", "liby.so", ""};
	struct ldcache c;

	ldcache_parse(&c, data, size);
	for (int i = 0; i < 4; i++)
		for (int level = 1; level <= 4; level++) {
			const char *path = ldcache_find(&c, names[i], EM_X86_64, level);

			sink += path ? strlen(path) : 0;
		}
}

static void use_metadata(struct pool *pool, const char *text)
{
	struct requirement r;
	char marker[512];
	const char *at = text, *line;
	size_t len;

	line = py_metadata_field(pool, text, "Version");
	sink += line ? (size_t)(py_version_cmp(line, "2.5.1+cu124") + py_version_cmp("1!2.0.post3", line)) : 0;
	while ((line = py_metadata_next(&at, "Requires-Dist", &len)))
		if (py_requirement_parse(&r, line, len, marker, sizeof(marker)))
			sink += (size_t)(py_version_fits("2.5.1+cu124", r.specifiers) +
					 py_marker_true(r.marker, "x86_64", 12, r.extras));
}

static void use_text(struct pool *pool, const char *text)
{
	struct torch_preloads p;
	const char *value = "";

	sink += py_assignment(pool, text, "cuda", &value) + strlen(value);
	torch_preloads_read(pool, text, &p);
	for (int i = 0; i < p.n_always; i++)
		sink += strlen(p.always[i].folder) + strlen(p.always[i].pattern);
	for (int i = 0; i < p.n_rescue; i++)
		sink += strlen(p.rescue[i].folder) + strlen(p.rescue[i].pattern);
}

static bool use_name(void *arg, const char *name, bool weak)
{
	sink += strlen(name) + weak + (size_t)(torch_abi_of_symbol(name) + 1) + elf_exports(arg, name);
	return true;
}

static void use_elf(struct pool *pool, const uint8_t *data, size_t size)
{
	struct elf_file f;
	char path[64];
	int fd = memfd_create("elf", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (elf_open(&f, pool, "", path, EM_X86_64) != 0)
		abort();
	if (!f.broken && !f.foreign) {
		for (unsigned i = 0; i < f.n_needed; i++)
			sink += strlen(f.needed[i]);
		sink += elf_has_section(&f, ".nv_fatbin") + elf_exports(&f, "one");
		elf_symbols(&f, true, 1000, use_name, &f);
		elf_symbols(&f, false, 1000, use_name, &f);
	}
	elf_close(&f);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pool pool = {0};
	char *text;

	if (size == 0)
		return 0;
	text = pool_copy(&pool, (const char *)data + 1, size - 1);
	switch (data[0] & 3) {
	case 0: use_cache(data + 1, size - 1); break;
	case 1: use_metadata(&pool, text); break;
	case 2: use_text(&pool, text); break;
	default: use_elf(&pool, data + 1, size - 1); break;
	}
	pool_release(&pool);
	return 0;
}
