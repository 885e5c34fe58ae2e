/* SPDX-License-Identifier: Apache-2.0
 * See recommend.h.
 */
#include "show/recommend.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

bool wheel_fits(const struct compat_choice *c)
{
	return c->fit < COMPAT_FIT_PYTHON;
}

#define OTHERS_SHOWN 3
#define REFUSED_SHOWN 8

static bool said_before(const struct compat_choice *list, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!wheel_fits(&list[k]) && strcmp(list[k].wheel->variant, list[i].wheel->variant) == 0 &&
		    strcmp(list[k].why, list[i].why) == 0)
			return true;
	return false;
}

/* The next best, and why not the rest: a reason is given once for each variant, at the newest release that it is true of. */
static void print_others(FILE *out, const struct compat_choice *list, size_t n)
{
	size_t good = 0, bad = 0;

	for (size_t i = 0; i < n; i++) {
		bool fit = wheel_fits(&list[i]);

		if ((i == 0 && fit) || (fit && ++good > OTHERS_SHOWN) ||
		    (!fit && (said_before(list, i) || ++bad > REFUSED_SHOWN)))
			continue;
		fprintf(out, "    %-4s PyTorch %-5s %-6s %s\n", fit ? "or" : "not", list[i].wheel->release,
			list[i].wheel->variant, list[i].why);
	}
	if (good > OTHERS_SHOWN)
		fprintf(out, "    and %zu more that fit\n", good - OTHERS_SHOWN);
}

static const char *wheel_command(const struct compat_wheel *w, bool windows, char *text, size_t size)
{
	return windows ? compat_wheel_command_windows(w, text, size) : compat_wheel_command(w, text, size);
}

void recommend_print(FILE *out, const struct compat_choice *list, size_t n, bool windows)
{
	char command[256];

	if (n && wheel_fits(&list[0]))
		fprintf(out, "  PyTorch %s for CUDA %d.%d (%s): %s\n    $ %s\n", list[0].wheel->release,
			list[0].wheel->cuda / 1000, list[0].wheel->cuda % 1000 / 10, list[0].wheel->variant,
			list[0].why, wheel_command(list[0].wheel, windows, command, sizeof(command)));
	else
		fputs("  no published build of PyTorch fits\n", out);
	print_others(out, list, n);
}

json_t *recommend_json(const struct compat_choice *list, size_t n, bool windows)
{
	json_t *a = json_array();
	char command[256];

	for (size_t i = 0; i < n; i++)
		json_array_append_new(
			a, JSON_OF(J_TEXT("release", list[i].wheel->release), J_TEXT("variant", list[i].wheel->variant),
				   J_BOOL("fits", wheel_fits(&list[i])), J_TEXT("why", list[i].why),
				   J_TEXT("command", wheel_command(list[i].wheel, windows, command, sizeof(command)))));
	return a;
}

static const char *const os_ids[] = {"linux", "windows", "wsl"}, *const os_names[] = {"Linux", "Windows", "WSL 2"};

/* Capabilities: from Blackwell on there are no closed kernel modules, and before Turing no open ones (NVIDIA's driver README, 2025). */
#define FIRST_OPEN	75
#define FIRST_OPEN_ONLY	100

struct driver_say {
	int first, last;		/* branches for all of the GPUs; 0 = not known, or no limit */
	int supports;			/* 1, 0; -1 = not known */
};

static bool needs_open_modules(const struct described *d)
{
	for (size_t i = 0; d->os == DESCRIBED_LINUX && !d->jetson && i < d->ask.n_cc; i++)
		if (d->ask.cc[i] >= FIRST_OPEN_ONLY)
			return true;
	return false;
}

/* One GPU needs the open modules, another one the closed ones. */
static bool needs_both_modules(const struct described *d)
{
	for (size_t i = 0; needs_open_modules(d) && i < d->ask.n_cc; i++)
		if (d->ask.cc[i] < FIRST_OPEN)
			return true;
	return false;
}

static struct driver_say driver_for(const struct described *d)
{
	const struct compat_ask *ask = &d->ask;
	struct driver_say s = {.supports = ask->driver.major ? 1 : -1};

	for (size_t i = 0; i < ask->n_cc; i++) {
		int first = compat_first_branch_for(ask->cc[i]), last = compat_branch_for(ask->cc[i]),
		    one = compat_driver_supports(ask->driver, ask->cc[i]);

		s.first = first > s.first ? first : s.first;
		s.last = last && (!s.last || last < s.last) ? last : s.last;
		s.supports = one == 0 || s.supports == 0 ? 0 : one < 0 ? -1 : s.supports;
	}
	s.supports = needs_both_modules(d) ? 0 : s.supports;
	return s;
}

/* In the words of a sentence; owned by the caller. */
static char *driver_advice(const struct described *d, const struct driver_say *s)
{
	if (s->first && s->last && s->first > s->last)
		return xstrdup("no branch supports all of these GPUs");
	if (needs_both_modules(d))
		return xstrdup("none supports both: the newer GPU needs the open kernel modules, the older one the closed ones");
	if (d->jetson && !d->driver)
		return xstrdup("it comes with the system of the Jetson (JetPack)");
	if (!d->driver)
		return xasprintf("install one of branch %d, the newest for %s", s->last, d->gpus);
	if (s->supports == 0 && d->ask.driver.major < s->first)
		return xasprintf("%s does not know %s: branch %d or newer is needed", d->driver, d->gpus, s->first);
	if (s->supports == 0)
		return xasprintf("%s no longer supports %s: branch %d is the last one that does", d->driver, d->gpus,
				 s->last);
	if (s->supports < 0)
		return xasprintf("%s is newer than what cuwhy knows", d->driver);
	return xasprintf("%s supports %s; so does everything from branch %d to %d", d->driver, d->gpus, s->first,
			 s->last);
}

static const char *os_advice(const struct described *d)
{
	switch (d->os) {
	case DESCRIBED_WINDOWS:
		return "'pip install torch' alone installs a build without CUDA there; what is said of wheels is known of those for "
		       "Linux";
	case DESCRIBED_WSL:
		return "the driver is that of Windows: install none inside WSL, it would hide that one";
	default:
		if (!needs_open_modules(d) || needs_both_modules(d))
			return NULL;
		return "use the open kernel modules (nvidia-driver-...-open): there are no others for this GPU";
	}
}

/* No wheel runs without a driver for the GPU: with the one that is advised. */
static struct compat_choice *described_choose(const struct described *d, const struct driver_say *s, size_t *n)
{
	struct compat_choice *list = xcalloc(COMPAT_CHOICES_MAX, sizeof(*list));
	struct compat_ask ask = d->ask;

	if ((!d->driver || s->supports == 0) && s->last)
		ask.driver = (struct compat_driver){s->last, COMPAT_ANY_RELEASE, 0};
	*n = compat_recommend(&ask, list, COMPAT_CHOICES_MAX);
	return list;
}

bool described_print(FILE *out, const struct described *d)
{
	struct driver_say s = driver_for(d);
	char *driver = driver_advice(d, &s);
	const char *os = os_advice(d);
	struct compat_choice *list;
	bool good;
	size_t n;

	list = described_choose(d, &s, &n);
	good = n && wheel_fits(&list[0]) && s.supports != 0;
	fprintf(out, "recommended for %s%s%s on %s:\n", d->gpus, d->driver ? " with driver " : "",
		d->driver ? d->driver : "", os_names[d->os]);
	fprintf(out, "  driver: %s\n", driver);
	if (os)
		fprintf(out, "  %s: %s\n", os_names[d->os], os);
	if (s.supports == 0 && !needs_both_modules(d))
		fprintf(out, "  with a driver of branch %d:\n", s.last);
	recommend_print(out, list, n, d->os == DESCRIBED_WINDOWS);
	free(driver);
	free(list);
	return good;
}

bool described_json(FILE *out, const struct described *d)
{
	struct driver_say s = driver_for(d);
	char *driver = driver_advice(d, &s);
	json_t *cc = json_array();
	struct compat_choice *list;
	bool good;
	size_t n;

	for (size_t i = 0; i < d->ask.n_cc; i++)
		json_append_text(cc, "%d.%d", d->ask.cc[i] / 10, d->ask.cc[i] % 10);
	list = described_choose(d, &s, &n);
	good = n && wheel_fits(&list[0]) && s.supports != 0;
	json_print(out,
		   JSON_OF(J_INT("schema", 1), J_TEXT("gpus", d->gpus), J_VALUE("capabilities", cc),
			   J_TEXT("os", os_ids[d->os]),
			   J_VALUE("driver", JSON_OF(J_TEXT("given", d->driver),
						     s.supports < 0 ? J_NULL("supports") : J_BOOL("supports", s.supports),
						     J_INT_OR_NULL("first", s.first, s.first),
						     J_INT_OR_NULL("last", s.last, s.last), J_TEXT("text", driver))),
			   J_TEXT("note", os_advice(d)), J_BOOL("fits", good),
			   J_VALUE("recommend", recommend_json(list, n, d->os == DESCRIBED_WINDOWS))));
	free(driver);
	free(list);
	return good;
}
