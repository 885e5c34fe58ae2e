/* SPDX-License-Identifier: Apache-2.0
 * Facts from a text: the machine, its versions and its tensors, as far as they are mentioned (see observe.h).
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "compat/compat.h"
#include "find/words/observe.h"
#include "find/words/env.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Wheels before 1.12, by the newest CUDA version that they came with. */
static int old_wheel(const char *version)
{
	static const struct { const char *release; int cuda; } list[] = {
		{"0.4.", 9010},	 {"1.0.", 10000}, {"1.1.", 10000}, {"1.2.", 10000}, {"1.3.", 10010},
		{"1.4.", 10010}, {"1.5.", 10020}, {"1.6.", 10020}, {"1.7.", 11000}, {"1.8.", 11010},
		{"1.9.", 11010}, {"1.10", 11030}, {"1.11", 11030},
	};
	char text[64];

	str_copy(text, sizeof(text), version);
	if (strlen(text) == 3)	/* "1.6" */
		str_copy(text + 3, sizeof(text) - 3, ".");
	for (size_t i = 0; i < COUNT(list); i++)
		if (str_starts(text, list[i].release))
			return list[i].cuda;
	return 0;
}

/* torch.version.cuda printed None: no CUDA, unless it was built for ROCm. */
static bool printed_no_cuda(const struct text_env *e)
{
	const struct snippet *cuda = snippets_find(&e->snippets, SNIPPET_TORCH_CUDA),
			     *hip = snippets_find(&e->snippets, SNIPPET_TORCH_HIP);

	return cuda && str_starts(cuda->answer, "None") && (!hip || str_starts(hip->answer, "None"));
}

/* torch.version.cuda printed '12.4'. */
static int printed_cuda(const struct text_env *e)
{
	const struct snippet *cuda = snippets_find(&e->snippets, SNIPPET_TORCH_CUDA);
	const char *s = cuda ? cuda->answer + strspn(cuda->answer, "'\"") : "";
	char *end;
	long major = strtol(s, &end, 10);

	return major >= 5 && major < 40 && *end == '.' ? (int)(major * 1000 + strtol(end + 1, NULL, 10) * 10) : 0;
}

static bool is_cpu_build(const struct text_env *e)
{
	return said_fact(&e->said, SAYS_text_torch_cpu) || strstr(e->torch, "+cpu") || printed_no_cuda(e);
}

static void fill_versions(struct casefile *f, const struct text_env *e)
{
	struct compat_driver d = {0};
	int printed = printed_cuda(e), cuda = e->torch_cuda ? e->torch_cuda : printed, driver_cuda = e->driver_cuda;
	bool cpu = is_cpu_build(e);
	const struct compat_wheel *w;

	if (e->driver[0] && compat_driver_parse(e->driver, &d)) {
		fact_set_text(f, FACT_text_driver, e->driver);
		fact_set_number(f, FACT_text_driver_major, d.major);
		if (!driver_cuda)
			driver_cuda = compat_driver_cuda(d);
	}
	if (driver_cuda)
		fact_set_number(f, FACT_text_driver_cuda, driver_cuda);
	if (e->torch[0])
		fact_set_text(f, FACT_text_torch, e->torch);
	if (!cuda && e->torch[0] && !cpu)
		cuda = old_wheel(e->torch);
	if (!cuda && e->torch[0] && !cpu && (w = compat_wheel(e->torch, 0, COMPAT_X86_64)) != NULL)
		cuda = w->cuda;
	if (e->cuda && !e->torch_cuda && !printed && e->cuda != driver_cuda)
		cuda = e->cuda;
	if (cuda)
		fact_set_number(f, FACT_text_torch_cuda, cuda);
	fact_set_flag(f, FACT_text_torch_gpu, (e->torch_cuda || printed) && !cpu);
	fact_set_flag(f, FACT_text_torch_cpu, cpu);
	fact_set_flag(f, FACT_text_driver_older, cuda && driver_cuda && driver_cuda < cuda);
	if (driver_cuda)
		fact_set_text(f, FACT_driver_version,
			      pool_printf(f->pool, "%d.%d", driver_cuda / 1000, driver_cuda % 1000 / 10));
}

/* People omit words and spaces ("RTX 3090", "RTX3090", "A6000"), and add some ("L4 24GB"). */
static const struct compat_gpu *gpu_by_words(struct casefile *f, const char *words)
{
	static const char *const before[] = {"", "GeForce ", "RTX ", "Tesla ", "Quadro ", "NVIDIA "};
	bool joined = (str_starts(words, "RTX") || str_starts(words, "GTX")) && isdigit((unsigned char)words[3]);
	char *name = joined ? pool_printf(f->pool, "%.3s %s", words, words + 3) : pool_strdup(f->pool, words);
	const struct compat_gpu *g = NULL;

	while (!g) {
		char *space = strrchr(name, ' ');

		for (size_t i = 0; i < COUNT(before) && !g; i++)
			g = compat_gpu_by_name(pool_printf(f->pool, "%s%s", before[i], name));
		if (!space)
			break;
		*space = '\0';
	}
	return g;
}

/* The first CUDA version whose code runs on the GPU: machine code also runs on later GPUs of the same major version. */
static int family_cuda(int cc)
{
	int first = 0;

	for (int k = cc / 10 * 10; k <= cc; k++) {
		const struct compat_capability *c = compat_capability(k);

		if (c && c->first_cuda && (!first || c->first_cuda < first))
			first = c->first_cuda;
	}
	return first;
}

static void fill_gpu(struct casefile *f, const struct text_env *e)
{
	const struct compat_gpu *g = NULL;
	const struct compat_capability *c;
	double cuda = fact_number(f, FACT_text_torch_cuda, 0);
	const struct snippet *printed = snippets_find(&e->snippets, SNIPPET_CAPABILITY);
	int cc = e->capability, major, minor;

	if (!cc && printed && sscanf(printed->answer, "(%d, %d)", &major, &minor) == 2 && major > 0 && major < 20)
		cc = major * 10 + minor;

	if (e->gpu[0]) {
		fact_set_text(f, FACT_text_gpu, e->gpu);
		fact_set_text(f, FACT_device_name, e->gpu);
		g = gpu_by_words(f, e->gpu);
		if (!cc && g)
			cc = g->cc;
		fact_set_flag(f, FACT_text_gpu_consumer,
			      g && compat_class_of(g->name ? g->name : e->gpu) == COMPAT_CLASS_GEFORCE);
	}
	fact_set_flag(f, FACT_text_gpu_newer, false);
	if (cc) {
		fact_set_number(f, FACT_text_gpu_cc, cc);
		fact_set_text(f, FACT_device_cc, pool_printf(f->pool, "%d.%d", cc / 10, cc % 10));
		fact_set_text(f, FACT_device_arch, pool_printf(f->pool, "sm_%d", cc));
		c = compat_capability(cc);
		if (c && c->first_cuda) {
			fact_set_number(f, FACT_text_gpu_first_cuda, c->first_cuda);
			fact_set_flag(f, FACT_text_gpu_newer, cuda > 0 && cuda < family_cuda(cc));
		}
	}
	if (e->gpus > 0)
		fact_set_number(f, FACT_text_gpus, e->gpus);
	if (e->arch_list[0])
		fact_set_text(f, FACT_text_archs, e->arch_list);
}

/* "sm_50 sm_60": what "['sm_50', 'sm_60']" prints. */
static const char *plain_list(struct casefile *f, const char *s)
{
	char *plain = pool_strdup(f->pool, s), *to = plain;

	for (; *s; s++)
		if (!strchr("[]',\"", *s))
			*to++ = *s;
	*to = '\0';
	return plain;
}

/* What was typed, and what it printed. */
static void fill_snippets(struct casefile *f, const struct text_env *e)
{
	const struct snippet *available = snippets_find(&e->snippets, SNIPPET_AVAILABLE),
			     *count = snippets_find(&e->snippets, SNIPPET_DEVICE_COUNT),
			     *archs = snippets_find(&e->snippets, SNIPPET_ARCHS);
	bool yes = available && available->answer[0] == 'T', no = available && !yes;

	fact_set_flag(f, FACT_text_available, yes || (said_fact(&e->said, SAYS_text_available) && !no));
	fact_set_flag(f, FACT_text_unavailable, no || (said_fact(&e->said, SAYS_text_unavailable) && !yes));
	if (count)
		fact_set_number(f, FACT_text_devices, strtod(count->answer, NULL));
	if (archs && !e->arch_list[0])
		fact_set_text(f, FACT_text_archs, plain_list(f, archs->answer));
	for (size_t i = 0; i < e->snippets.n; i++) {
		const struct snippet *a = &e->snippets.list[i];

		case_evidence(f, TEXT_OBSERVER,
			      pool_printf(f->pool, "line %llu: %s printed %s", (unsigned long long)a->line,
					  snippet_typed(a->id), a->answer));
	}
}

static void fill_circumstances(struct casefile *f, const struct text_env *e)
{
	const struct text_track *g = env_growth(e);
	double entries = 0;

	if (e->visible_set) {
		fact_set_text(f, FACT_text_visible, e->visible);
		entries = e->visible[0] ? 1 : 0;
		for (const char *s = e->visible; *s; s++)
			entries += *s == ',';
	}
	fact_set_number(f, FACT_text_visible_entries, entries);
	fact_set_number(f, FACT_text_nproc, e->nproc);
	fact_set_flag(f, FACT_text_growth, g != NULL);
	if (g) {
		fact_set_number(f, FACT_text_growth_first, g->first);
		fact_set_number(f, FACT_text_growth_last, g->last);
	}
	if (e->memory_total > 0) {
		fact_set_number(f, FACT_text_smi_used, e->memory_used);
		fact_set_number(f, FACT_text_smi_total, e->memory_total);
	}
	fact_set_number(f, FACT_text_smi_shared, (double)env_shared_pids(e));
	fact_set_number(f, FACT_text_smi_first, (double)env_first_pids(e));
}

/* The lowest architecture in a list such as "sm_50 sm_60 compute_90". */
static int least_arch(const char *list)
{
	int least = 0;

	for (const char *s = list; (s = strchr(s, '_')) != NULL; s++) {
		int n = (int)strtol(s + 1, NULL, 10);

		if (n && (!least || n < least))
			least = n;
	}
	return least;
}

static void observe_tensors(struct casefile *f, const struct text_env *e)
{
	double cc = fact_number(f, FACT_text_gpu_cc, 0);
	int least = e->capability_min ? e->capability_min : least_arch(e->arch_list);

	fact_set_number(f, FACT_text_device, e->device_max);
	fact_set_number(f, FACT_text_elements, e->elements);
	fact_set_number(f, FACT_text_largest, e->largest);
	fact_set_number(f, FACT_text_migs, e->migs);
	fact_set_number(f, FACT_text_block, e->block);
	fact_set_number(f, FACT_text_gpu_memory, e->gpu_memory);
	fact_set_number(f, FACT_text_start_free, e->start_free);
	if (e->start_total > 0 || !(e->start_free > 0))
		fact_set_number(f, FACT_text_start_total, e->start_total);
	fact_set_number(f, FACT_text_number, e->number);
	fact_set_flag(f, FACT_text_ranks_differ, e->ops_differ);
	if (e->forward.place[0])
		fact_set_text(f, FACT_autograd_saved, e->forward.place);
	fact_set_flag(f, FACT_text_visible_late, e->cuda_used_line && e->visible_line > e->cuda_used_line);
	fact_set_flag(f, FACT_text_gpu_dropped, cc > 0 && least > 0 && cc < least);
}

/* The lowest architecture that a wheel has code for. */
static int wheel_least(const struct compat_wheel *w)
{
	const char *list = w->archs;
	struct compat_arch a;
	int least = 0;

	while (compat_arch_next(&list, &a))
		if (!least || a.target.arch < least)
			least = a.target.arch;
	return least;
}

/* Does the official wheel run on the GPU? Then it is not PyTorch that lacks code for it. */
static void fill_wheel(struct casefile *f, const struct text_env *e)
{
	int cuda = (int)fact_number(f, FACT_text_torch_cuda, 0), cc = (int)fact_number(f, FACT_text_gpu_cc, 0);
	const struct compat_wheel *w = e->torch[0] && cc && !is_cpu_build(e)
					       ? compat_wheel(e->torch, e->torch_cuda ? cuda : 0, COMPAT_X86_64)
					       : NULL;
	enum compat_code code;

	if (!w || !w->archs)
		return;
	if (cc < wheel_least(w))
		fact_set_flag(f, FACT_text_gpu_dropped, true);
	code = compat_wheel_code(w, cc, (int)fact_number(f, FACT_text_driver_cuda, 0));
	if (code == COMPAT_CODE_RUNS)
		fact_set_flag(f, FACT_text_wheel_runs, true);
	else if (code != COMPAT_CODE_UNKNOWN && code != COMPAT_CODE_TEGRA)
		fact_set_flag(f, FACT_text_wheel_runs, false);
}

/* So that an answer can quote the line. */
static void fill_places(struct casefile *f, const struct text_env *e)
{
	const struct text_place *p;
	enum fact_id fact;

	for (size_t i = 0; (p = env_place(e, i, &fact)) != NULL; i++)
		if (p->line && !fact_place(f, fact))
			fact_set_place(f, fact, pool_printf(f->pool, "%s line %llu: %s", p->file,
							    (unsigned long long)p->line, p->text));
}

/* As the text names them, to be shown. */
static void show_versions(struct casefile *f, const struct text_env *e)
{
	if (!e->torch[0] && !e->driver[0] && !e->gpu[0] && !e->torch_cuda)
		return;
	case_observe(f, GROUP_versions);
	if (e->torch[0])
		fact_set_text(f, FACT_versions_torch, e->torch);
	if (e->torch_cuda)
		fact_set_text(f, FACT_versions_cuda,
			      pool_printf(f->pool, "%d.%d", e->torch_cuda / 1000, e->torch_cuda % 1000 / 10));
	if (e->driver[0])
		fact_set_text(f, FACT_versions_driver, e->driver);
	if (e->gpu[0])
		fact_set_text(f, FACT_versions_gpu, e->gpu);
}

void facts_of_text_machine(struct casefile *f, const struct text_env *e)
{
	show_versions(f, e);
	facts_of_said(f, &e->said);
	fill_versions(f, e);
	fill_gpu(f, e);
	fill_circumstances(f, e);
	fill_snippets(f, e);
	observe_tensors(f, e);
	fill_wheel(f, e);
	fill_places(f, e);
	facts_of_settings(f, &e->settings);
	if (e->shm_size > 0) {
		fact_set_number(f, FACT_shm_size, e->shm_size);
		fact_set_number(f, FACT_shm_free, e->shm_free);
	}
}
