/* SPDX-License-Identifier: Apache-2.0
 * Environment variables that do not fit together.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "input/machine/variables_priv.h"
#include "base/banned.h"

static void contradict(struct variables *v, struct pool *pool, enum var_kind kind, const char *name, const char *other, const char *text)
{
	struct var_finding f = {.kind = kind, .name = name, .other = other, .text = text, .advice = pool_printf(pool, "unset %s", name)};

	variables_add(v, pool, &f);
}

static bool on(const struct variables *v, const char *name)
{
	const char *value = variables_get(v, name);

	return value && value_is_on(value);
}

static bool set(const struct variables *v, const char *name)
{
	const char *value = variables_get(v, name);

	return value && *value;
}

/* What makes another variable pointless. */
static void look_at_pointless(struct variables *v, struct pool *pool)
{
	static const struct { const char *on, *other, *text; } pairs[] = {
		{"PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_ALLOC_CONF", "without the cache its settings have no effect"},
		{"PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_CUDA_ALLOC_CONF", "without the cache its settings have no effect"},
		{"CUDA_CACHE_DISABLE", "CUDA_CACHE_PATH", "the cache is switched off, so its place does not matter"},
		{"CUDA_CACHE_DISABLE", "CUDA_CACHE_MAXSIZE", "the cache is switched off, so its size does not matter"},
		{"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "direct access between GPUs is switched off, so its level does not matter"},
		{"NCCL_IB_DISABLE", "NCCL_IB_HCA", "InfiniBand is switched off, so the adapter does not matter"},
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (on(v, pairs[i].on) && set(v, pairs[i].other))
			contradict(v, pool, VAR_CONTRADICTS, pairs[i].on, pairs[i].other, pairs[i].text);
	if (set(v, "NCCL_DEBUG_SUBSYS") && !set(v, "NCCL_DEBUG"))
		contradict(v, pool, VAR_CONTRADICTS, "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG", "without NCCL_DEBUG it has no effect");
}

static void look_at_jit(struct variables *v, struct pool *pool)
{
	static const char *const force[] = {"CUDA_FORCE_PTX_JIT", "CUDA_FORCE_JIT"};
	static const char *const disable[] = {"CUDA_DISABLE_PTX_JIT", "CUDA_DISABLE_JIT"};

	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 2; k++)
			if (on(v, force[i]) && on(v, disable[k]))
				contradict(v, pool, VAR_CONTRADICTS, disable[k], force[i],
					   "one wants PTX only, the other forbids it: no kernel can be loaded");
}

static void look_at_allocator(struct variables *v, struct pool *pool)
{
	const char *new = variables_get(v, "PYTORCH_ALLOC_CONF"), *old = variables_get(v, "PYTORCH_CUDA_ALLOC_CONF");

	if (new && old && *new && *old && strcmp(new, old) != 0)
		contradict(v, pool, VAR_CONTRADICTS, "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
			   "both are set and differ: older releases of PyTorch read the first, newer ones the second");
}

static void look_at_ranks(struct variables *v, struct pool *pool, const char *rank, const char *size)
{
	const char *r = variables_get(v, rank), *n = variables_get(v, size);
	uint64_t a, b;

	if (r && n && str_u64(r, &a) && str_u64(n, &b) && a >= b)
		contradict(v, pool, VAR_CONTRADICTS, rank, size,
			   pool_printf(pool, "%s is %.20s, but there are %.20s of them, counted from 0", rank, r, n));
}

static int items_of(const char *list)
{
	int n = *list != '\0';

	for (; *list; list++)
		n += *list == ',';
	return n;
}

/* NVIDIA_VISIBLE_DEVICES says which GPUs the container has; inside they are counted from 0 again. */
static void look_at_visible(struct variables *v, struct pool *pool)
{
	const char *cuda = variables_get(v, "CUDA_VISIBLE_DEVICES"), *nvidia = variables_get(v, "NVIDIA_VISIBLE_DEVICES");
	const char *text = NULL;
	struct visible seen;
	int n;

	if (!cuda || !*cuda || !nvidia)
		return;
	visible_parse(&seen, pool, cuda, NULL, -1);
	if (seen.n <= 0 || seen.gpu[0] < 0)
		return;
	n = items_of(nvidia);
	if (strcmp(nvidia, "none") == 0)
		text = "the container was started without a GPU, but CUDA_VISIBLE_DEVICES names one";
	else if (*nvidia && strcmp(nvidia, "all") != 0 && strcmp(nvidia, "void") != 0)
		for (int i = 0; i < seen.n && !text; i++)
			if (seen.gpu[i] >= n)
				text = pool_printf(pool, "in a container that has %d GPU%s they are counted from 0 again: there is no GPU %d", n, n == 1 ? "" : "s",
						   seen.gpu[i]);
	if (text)
		contradict(v, pool, VAR_CONTRADICTS, "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", text);
}

static bool lists(const char *list, const char *word)
{
	size_t n = strlen(word), len;

	for (;; list += len + 1) {
		len = strcspn(list, ",");
		if (len == n && strncmp(list, word, n) == 0)
			return true;
		if (!list[len])
			return false;
	}
}

void variables_look_at_pairs(struct variables *v, struct pool *pool)
{
	const char *home = variables_get(v, "CUDA_HOME"), *path = variables_get(v, "CUDA_PATH");
	const char *capabilities = variables_get(v, "NVIDIA_DRIVER_CAPABILITIES");

	look_at_pointless(v, pool);
	look_at_jit(v, pool);
	look_at_allocator(v, pool);
	look_at_ranks(v, pool, "RANK", "WORLD_SIZE");
	look_at_ranks(v, pool, "LOCAL_RANK", "LOCAL_WORLD_SIZE");
	look_at_visible(v, pool);
	if (home && path && *home && *path && strcmp(home, path) != 0)
		contradict(v, pool, VAR_CONTRADICTS, "CUDA_PATH", "CUDA_HOME",
			   "they name different toolkits: PyTorch takes CUDA_HOME, others take CUDA_PATH");
	if (on(v, "NCCL_P2P_DISABLE") && on(v, "NCCL_SHM_DISABLE"))
		contradict(v, pool, VAR_DANGEROUS, "NCCL_SHM_DISABLE", "NCCL_P2P_DISABLE",
			   "both ways within a machine are switched off: all traffic takes network sockets");
	if (capabilities && *capabilities && !lists(capabilities, "all") && !lists(capabilities, "compute"))
		contradict(v, pool, VAR_BAD_VALUE, "NVIDIA_DRIVER_CAPABILITIES", NULL,
			   "without 'compute' the container gets no libcuda: CUDA cannot be used");
}
