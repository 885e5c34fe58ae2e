/* SPDX-License-Identifier: Apache-2.0
 * Signs that CUDA extensions are built on this machine: what PyTorch built before, and the project in the current folder.
 */
#include <string.h>

#include "input/machine/host_priv.h"
#include "base/banned.h"

/* Where torch.utils.cpp_extension keeps what it built, if there is anything. */
static void take_cache(const struct looking *l)
{
	const char *dir = look_env(l, "TORCH_EXTENSIONS_DIR"), *cache = look_env(l, "XDG_CACHE_HOME"), *home = look_env(l, "HOME");
	char **names;

	if (!dir && cache)
		dir = pool_printf(l->pool, "%s/torch_extensions", cache);
	else if (!dir && home)
		dir = pool_printf(l->pool, "%s/.cache/torch_extensions", home);
	if (dir && dir[0] == '/' && look_list(l, dir, 64, &names) > 0)
		l->h->tools.build_cache = look_clean(l, dir, strlen(dir));
}

static void take_setup(const struct looking *l)
{
	const char *file = l->cwd ? pool_printf(l->pool, "%s/setup.py", l->cwd) : NULL;
	const char *text = file ? look_file(l, file, 1 << 20, NULL) : NULL;

	if (text && strstr(text, "CUDAExtension"))
		l->h->tools.build_setup = look_clean(l, file, strlen(file));
}

void host_look_builds(const struct looking *l)
{
	take_cache(l);
	take_setup(l);
}
