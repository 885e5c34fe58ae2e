/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's releases and wheels: what they contain and what they need.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "compat/compat.h"

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

static const struct compat_torch releases[] = {
#define COMPAT_TORCH(release, first, last, free_threaded, vision, audio, triton) \
	{release, first, last, free_threaded, vision, audio, triton},
#include "kb/compat_torch.def"
};

#define DEFAULT		.is_default = true
#define STABLE		.is_default = false
#define EXPERIMENTAL	.experimental = true
#define MEASURED	true
#define PUBLISHED	false
static const struct compat_wheel wheels[] = {
#define COMPAT_WHEEL(release_, variant_, cuda_, machine_, kind, measured_, archs_) \
	{.release = release_, .variant = variant_, .cuda = cuda_, .machine = COMPAT_##machine_, kind, .archs = archs_, \
	 .measured = measured_},
#include "kb/compat_torch.def"
};
#undef DEFAULT
#undef STABLE
#undef EXPERIMENTAL
#undef MEASURED
#undef PUBLISHED

/* "2.7" is the release of "2.7", "2.7.1", "2.7.1+cu128" and "2.7.0a0+git", not of "2.71". */
static bool is_torch_release(const char *version, const char *release)
{
	size_t n = strlen(release);

	return str_starts(version, release) && (version[n] == '\0' || version[n] == '.' || version[n] == '+');
}

const struct compat_torch *compat_torch(const char *version)
{
	for (size_t i = 0; version && i < COUNT(releases); i++)
		if (is_torch_release(version, releases[i].release))
			return &releases[i];
	return NULL;
}

static bool is_variant(const struct compat_wheel *w, const char *local, int cuda)
{
	if (cuda)
		return w->cuda == cuda / 10 * 10;
	return local ? strcmp(local + 1, w->variant) == 0 : w->is_default;
}

const struct compat_wheel *compat_wheel(const char *version, int cuda, enum compat_machine machine)
{
	const char *local = version ? strchr(version, '+') : NULL;

	for (size_t i = 0; version && i < COUNT(wheels); i++)
		if (wheels[i].machine == machine && is_torch_release(version, wheels[i].release) &&
		    is_variant(&wheels[i], local, cuda))
			return &wheels[i];
	return NULL;
}

const struct compat_wheel *compat_wheel_at(size_t i)
{
	return i < COUNT(wheels) ? &wheels[i] : NULL;
}

bool compat_arch_next(const char **list, struct compat_arch *a)
{
	const char *p = *list;
	char *end;

	*a = (struct compat_arch){0};
	while (p && *p == ' ')
		p++;
	if (!p || *p < '0' || *p > '9')
		return false;
	a->target.arch = (int)strtol(p, &end, 10);
	if (*end == 'a' || *end == 'f')
		a->target.suffix = *end++;
	if (str_starts(end, "+PTX")) {
		a->ptx = true;
		end += strlen("+PTX");
	}
	*list = end;
	return true;
}

/* The best answer for one entry of the list: its machine code, else its PTX. */
static enum compat_code arch_code(const struct compat_arch *a, int cuda, int cc, int driver_cuda)
{
	enum compat_code sass = compat_sass_runs(a->target, cc);

	if (sass == COMPAT_CODE_RUNS || !a->ptx)
		return sass;
	return compat_ptx_runs(a->target, compat_ptx_of_cuda(cuda), cc, driver_cuda);
}

/* Which of two reasons not to run says more. */
static bool says_more(enum compat_code a, enum compat_code b)
{
	static const int weight[] = {
		[COMPAT_CODE_RUNS] = 6,	       [COMPAT_CODE_PTX_VERSION] = 5, [COMPAT_CODE_UNKNOWN] = 4,
		[COMPAT_CODE_TEGRA] = 3,       [COMPAT_CODE_SPECIFIC] = 2,    [COMPAT_CODE_TOO_NEW] = 1,
		[COMPAT_CODE_OTHER_MAJOR] = 0,
	};

	return weight[a] > weight[b];
}

enum compat_code compat_wheel_code(const struct compat_wheel *w, int cc, int driver_cuda)
{
	enum compat_code best = COMPAT_CODE_OTHER_MAJOR, code;
	const char *list = w->archs;
	struct compat_arch a;

	if (!list || cc <= 0)
		return COMPAT_CODE_UNKNOWN;
	while (compat_arch_next(&list, &a)) {
		code = arch_code(&a, w->cuda, cc, driver_cuda);
		if (says_more(code, best))
			best = code;
	}
	return best;
}

/* Free-threaded wheels exist from one Python on, and that build of Python takes no others. */
bool compat_torch_has_python(const struct compat_torch *t, int python, bool free_threaded)
{
	if (!python)
		return true;
	if (free_threaded)
		return t->python_free && python >= t->python_free && python <= t->python_last;
	return python >= t->python_first && python <= t->python_last;
}

const char *compat_wheel_command(const struct compat_wheel *w, char *text, size_t size)
{
	if (w->is_default)
		snprintf(text, size, "pip install 'torch==%s.*'", w->release);
	else
		snprintf(text, size, "pip install 'torch==%s.*' --index-url https://download.pytorch.org/whl/%s",
			 w->release, w->variant);
	return text;
}

const char *compat_wheel_command_windows(const struct compat_wheel *w, char *text, size_t size)
{
	snprintf(text, size, "pip install \"torch==%s.*\" --index-url https://download.pytorch.org/whl/%s", w->release,
		 w->variant);
	return text;
}
