/* SPDX-License-Identifier: Apache-2.0
 * Which wheel for this machine, and why not the others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compat/compat.h"

/* What one check says about a wheel: COMPAT_FIT_NATIVE if there is no objection. */
struct opinion {
	enum compat_fit fit;
	int cc;
};

static void choice_say(struct compat_choice *c, enum compat_fit fit, int cc)
{
	c->fit = fit;
	c->cc = cc;
}

/* A driver for all GPUs here that runs this toolkit: every GPU has a last branch. */
static int hopeless_gpu(const struct compat_ask *ask, int cuda)
{
	struct compat_need need;

	if (!compat_driver_needed(cuda, &need))
		return 0;
	for (size_t i = 0; i < ask->n_cc; i++) {
		int newest = compat_branch_for(ask->cc[i]);

		if (newest && need.least.major > newest)
			return ask->cc[i];
	}
	return 0;
}

/* Answers of several GPUs: one without code decides, then one that cannot be judged, then one that compiles. */
static struct opinion code_opinion(const struct compat_ask *ask, const struct compat_wheel *w)
{
	int driver_cuda = compat_driver_cuda(ask->driver);
	struct opinion all = {COMPAT_FIT_NATIVE, 0};

	for (size_t i = 0; i < ask->n_cc; i++) {
		enum compat_code code = compat_wheel_code(w, ask->cc[i], driver_cuda);
		const char *list = w->archs;
		struct compat_arch a;
		bool sass = false;

		if (code == COMPAT_CODE_UNKNOWN) {
			if (all.fit < COMPAT_FIT_UNKNOWN)
				all = (struct opinion){COMPAT_FIT_UNKNOWN, ask->cc[i]};
			continue;
		}
		if (code != COMPAT_CODE_RUNS)
			return (struct opinion){COMPAT_FIT_CODE, ask->cc[i]};
		while (!sass && compat_arch_next(&list, &a))
			sass = compat_sass_runs(a.target, ask->cc[i]) == COMPAT_CODE_RUNS;
		if (!sass && all.fit < COMPAT_FIT_PTX)
			all = (struct opinion){COMPAT_FIT_PTX, ask->cc[i]};
	}
	return all;
}

static const struct windows_floor {
	int cuda_major;
	struct compat_driver least;
} windows_floors[] = {
#define COMPAT_FLOOR_WINDOWS(cuda, major, minor) {cuda, {major, minor, 0}},
#include "kb/compat_drivers.def"
};

#define N_WINDOWS_FLOORS (sizeof(windows_floors) / sizeof(windows_floors[0]))

static const struct windows_floor *windows_floor(int cuda)
{
	for (size_t i = 0; i < N_WINDOWS_FLOORS; i++)
		if (windows_floors[i].cuda_major == cuda / 1000)
			return &windows_floors[i];
	return NULL;
}

/* A driver for Windows, as if for Linux: of a branch that is new enough, any release will do, except those between the floor of Linux and
 * that of Windows. */
static struct compat_driver comparable_driver(const struct compat_ask *ask)
{
	struct compat_driver d = ask->driver;

	if (!ask->windows || !d.major)
		return d;
	for (size_t i = 0; i < N_WINDOWS_FLOORS; i++) {
		const struct compat_driver *least = &windows_floors[i].least;
		struct compat_need need;

		compat_driver_needed(windows_floors[i].cuda_major * 1000, &need);
		if (d.major >= need.least.major &&
		    (d.major < least->major || (d.major == least->major && d.minor < least->minor)))
			return (struct compat_driver){need.least.major - 1, COMPAT_ANY_RELEASE, 0};
	}
	return (struct compat_driver){d.major, COMPAT_ANY_RELEASE, 0};
}

static struct opinion driver_opinion(const struct compat_ask *ask, const struct compat_wheel *w)
{
	int hopeless = hopeless_gpu(ask, w->cuda);

	switch (compat_driver_runs(comparable_driver(ask), w->cuda)) {
	case COMPAT_RUN_NATIVE:
		return (struct opinion){COMPAT_FIT_NATIVE, 0};
	case COMPAT_RUN_MINOR:
		return (struct opinion){COMPAT_FIT_MINOR, 0};
	case COMPAT_RUN_UNKNOWN:
		if (hopeless)
			return (struct opinion){COMPAT_FIT_DRIVER_NEVER, hopeless};
		return (struct opinion){COMPAT_FIT_UNKNOWN, 0};
	case COMPAT_RUN_FORWARD:
		if (ask->forward)
			return (struct opinion){COMPAT_FIT_FORWARD, 0};
		break;
	case COMPAT_RUN_NO:
		break;
	}
	return (struct opinion){hopeless ? COMPAT_FIT_DRIVER_NEVER : COMPAT_FIT_DRIVER, hopeless};
}

#define CC_FMT		"%d.%d"
#define CC_ARGS(cc)	(cc) / 10, (cc) % 10
#define CUDA_ARGS(v)	(v) / 1000, (v) % 1000 / 10

static const char *branch_words(int cc, char text[64])
{
	const struct compat_generation *g = compat_generation(cc);

	snprintf(text, 64, "%s (R%d)", g ? g->name : "this GPU", compat_branch_for(cc));
	return text;
}

static void say_code(struct compat_choice *c, int driver_cuda)
{
	const struct compat_wheel *w = c->wheel;

	switch (compat_wheel_code(w, c->cc, driver_cuda)) {
	case COMPAT_CODE_PTX_VERSION:
		snprintf(c->why, sizeof(c->why),
			 "it has only PTX for capability " CC_FMT ", of a version that this driver "
			 "cannot read", CC_ARGS(c->cc));
		break;
	case COMPAT_CODE_TEGRA:
		snprintf(c->why, sizeof(c->why),
			 "it has no code for capability " CC_FMT ", a system on a chip (it has %s)", CC_ARGS(c->cc),
			 w->archs);
		break;
	default:
		snprintf(c->why, sizeof(c->why), "it has no code for capability " CC_FMT " (it has %s)", CC_ARGS(c->cc),
			 w->archs);
	}
}

/* "528.33"; "580" where NVIDIA names a branch alone. */
static void windows_text(int cuda, const struct compat_need *need, char *text, size_t size)
{
	const struct windows_floor *f = windows_floor(cuda);

	if (f && f->least.minor)
		snprintf(text, size, "%d.%02d", f->least.major, f->least.minor);
	else
		snprintf(text, size, "%d", f ? f->least.major : need->least.major);
}

static void say_driver(struct compat_choice *c, struct compat_driver have, bool windows)
{
	struct compat_need need;
	char least[32], mine[32], last[64];

	compat_driver_needed(c->wheel->cuda, &need);
	if (windows)
		windows_text(c->wheel->cuda, &need, least, sizeof(least));
	else
		compat_driver_text(need.least, least);
	compat_driver_text(have, mine);
	if (c->fit == COMPAT_FIT_DRIVER)
		snprintf(c->why, sizeof(c->why), "CUDA %d.%d needs driver %s, and %s is installed",
			 CUDA_ARGS(c->wheel->cuda), least, mine);
	else
		snprintf(c->why, sizeof(c->why), "CUDA %d.%d needs driver %s, newer than the last one for %s",
			 CUDA_ARGS(c->wheel->cuda), least, branch_words(c->cc, last));
}

static void say_unknown(struct compat_choice *c, const struct compat_ask *ask)
{
	if (ask->driver.major <= 0)
		snprintf(c->why, sizeof(c->why), "no driver version is known to check it against");
	else if (c->cc)
		snprintf(c->why, sizeof(c->why), "it could not be checked for capability " CC_FMT, CC_ARGS(c->cc));
	else
		snprintf(c->why, sizeof(c->why), "CUDA %d.%d is newer than what cuwhy knows", CUDA_ARGS(c->wheel->cuda));
}

static void choice_explain(struct compat_choice *c, const struct compat_ask *ask)
{
	const struct compat_wheel *w = c->wheel;
	const struct compat_torch *t = compat_torch(w->release);

	switch (c->fit) {
	case COMPAT_FIT_NATIVE:
		snprintf(c->why, sizeof(c->why),
			 "the driver is as new as CUDA %d.%d, and it has code for every GPU here", CUDA_ARGS(w->cuda));
		break;
	case COMPAT_FIT_MINOR:
		snprintf(c->why, sizeof(c->why),
			 "this driver runs all of CUDA %d (minor-version compatibility), and it has code "
			 "for every GPU here", w->cuda / 1000);
		break;
	case COMPAT_FIT_FORWARD:
		snprintf(c->why, sizeof(c->why),
			 "it runs with the package cuda-compat-%d-%d, which this data-center card may use",
			 CUDA_ARGS(w->cuda));
		break;
	case COMPAT_FIT_PTX:
		snprintf(c->why, sizeof(c->why), "it runs, but the driver compiles all code for capability " CC_FMT
			 " from PTX at the first start", CC_ARGS(c->cc));
		break;
	case COMPAT_FIT_UNKNOWN:
		say_unknown(c, ask);
		break;
	case COMPAT_FIT_PYTHON:
		snprintf(c->why, sizeof(c->why), "it has wheels for Python 3.%d to 3.%d, not for 3.%d%s",
			 t->python_first % 100, t->python_last % 100, ask->python % 100, ask->free_threaded ? "t" : "");
		break;
	case COMPAT_FIT_DRIVER:
	case COMPAT_FIT_DRIVER_NEVER:
		say_driver(c, ask->driver, ask->windows);
		break;
	case COMPAT_FIT_CODE:
		say_code(c, compat_driver_cuda(ask->driver));
		break;
	}
}

/* Code first: no driver helps a wheel that has none for the GPU. */
static void choice_judge(struct compat_choice *c, const struct compat_ask *ask, const struct compat_wheel *w)
{
	const struct compat_torch *t = compat_torch(w->release);
	struct opinion code = code_opinion(ask, w), driver = driver_opinion(ask, w), worst;

	c->wheel = w;
	worst = driver.fit > code.fit ? driver : code;
	if (code.fit == COMPAT_FIT_CODE)
		choice_say(c, code.fit, code.cc);
	else if (t && !compat_torch_has_python(t, ask->python, ask->free_threaded))
		choice_say(c, COMPAT_FIT_PYTHON, 0);
	else
		choice_say(c, worst.fit, worst.cc);
	choice_explain(c, ask);
}

static bool choice_is_refused(const struct compat_choice *c)
{
	return c->fit >= COMPAT_FIT_PYTHON;
}

/* How much trouble a working wheel causes: none if it runs natively or by minor-version compatibility. */
static int choice_trouble(const struct compat_choice *c)
{
	return c->fit <= COMPAT_FIT_MINOR ? 0 : (int)c->fit;
}

static int release_number(const struct compat_wheel *w)
{
	char *end;
	long major = strtol(w->release, &end, 10);

	return (int)(major * 1000 + (*end == '.' ? strtol(end + 1, NULL, 10) : 0));
}

static int choice_better(const void *left, const void *right)
{
	const struct compat_choice *a = left, *b = right;

	if (choice_is_refused(a) != choice_is_refused(b))
		return choice_is_refused(a) - choice_is_refused(b);
	if (!choice_is_refused(a) && choice_trouble(a) != choice_trouble(b))
		return choice_trouble(a) - choice_trouble(b);
	if (!choice_is_refused(a) && a->wheel->experimental != b->wheel->experimental)
		return a->wheel->experimental - b->wheel->experimental;
	if (release_number(a->wheel) != release_number(b->wheel))
		return release_number(b->wheel) - release_number(a->wheel);
	if (!choice_is_refused(a) && a->fit != b->fit)
		return (int)a->fit - (int)b->fit;
	return b->wheel->cuda - a->wheel->cuda;
}

size_t compat_recommend(const struct compat_ask *ask, struct compat_choice *out, size_t max)
{
	const struct compat_wheel *w;
	size_t n = 0;

	for (size_t i = 0; n < max && (w = compat_wheel_at(i)); i++)
		if (w->machine == ask->machine)
			choice_judge(&out[n++], ask, w);
	xsort(out, n, sizeof(*out), choice_better);
	return n;
}
