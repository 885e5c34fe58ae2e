/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy doctor`: do this machine's driver, GPUs and PyTorch work together?
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/opt.h"
#include "base/pool.h"
#include "base/progress.h"
#include "base/str.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "read/machine/machine.h"
#include "verdict/doctor.h"
#include "show/recommend.h"
#include "show/report.h"

#define LIMIT_SECONDS	10
#define PID_MAX		4194304u

static struct {
	bool json, recommend, help;
	const char *python, *pid, *bundle, *color, *timeout, *root, *gpu, *driver, *os;
} given;

static const struct opt_usage usage = {
	"doctor", "[options] [BUNDLE]",
	"Checks whether this machine's driver, GPUs and PyTorch work together and, if not, says exactly what to\n"
	"change. With BUNDLE: checks the machine that the bundle was made on. With --recommend --gpu: what to install on\n"
	"a machine that you do not have.",
	.exits = "The exit status is 0 if nothing is wrong, 1 if a problem was found (with --gpu: nothing fits), 2 if the\n"
		 "machine could not be checked or cuwhy itself failed.\n",
	.examples = "  cuwhy doctor                       this machine and the Python of this shell\n"
		    "  cuwhy doctor --python venv         the environment in ./venv\n"
		    "  cuwhy doctor --recommend           which PyTorch to install here, and why not the others\n"
		    "  cuwhy doctor --recommend --gpu 'RTX 5090' --driver 570 --os windows\n"
		    "                                     the same for another machine\n"
		    "  cuwhy doctor --bundle my.json      save everything that was checked, to send it to someone\n",
};

static const struct opt options[] = {
	{"python", 0, "PATH", "the environment to check: an interpreter, or its folder", NULL, &given.python},
	{"pid", 0, "N", "check the environment and the loaded libraries of a running process", NULL, &given.pid},
	{"recommend", 0, NULL, "say which PyTorch or driver to install, and why not the others", &given.recommend, NULL},
	{"gpu", 0, "NAME ...", "with --recommend: for a machine with this GPU, instead of this one; may be repeated",
	 NULL, &given.gpu},
	{"driver", 0, "VERSION", "its driver: 570, 580.65.06; none: it has none yet", NULL, &given.driver},
	{"os", 0, "OS", "linux (default), windows or wsl", NULL, &given.os},
	{"bundle", 0, "FILE", "write everything that was checked to FILE, with user names and secrets removed", NULL,
	 &given.bundle},
	{"root", 0, "DIR", "check a tree of files copied from a machine (queries no driver)", NULL, &given.root},
	{"timeout", 0, "SECONDS", "how long the driver may take to answer (10)", NULL, &given.timeout},
	{"json", 0, NULL, "print one JSON object", &given.json, NULL},
	{"color", 0, "WHEN", "auto, always or never", NULL, &given.color},
	{"help", 'h', NULL, "print this", &given.help, NULL},
	{0},
};

static const struct opt_words words[] = {
	{"color", COLOR_WORDS},
	{"os", "linux windows wsl"},
	{0},
};

const struct opt_table doctor_table = {&usage, options, words, OPERAND_FILE};

/* The list comes first, so that people know what is in the file before they send it. */
static int write_bundle(const struct machine *m, struct err *e)
{
	json_t *o = machine_to_json(m);
	char *removed = bundle_redact_for(o, m->environ), *list = bundle_list(o),
	     *text = json_string_of(o, JSON_INDENT(1));
	FILE *out = given.json ? stderr : stdout;
	int rc;

	fprintf(out, "cuwhy: '%s' will contain:\n%s  removed    %s\n\n", given.bundle, list, removed);
	fflush(out);
	rc = text ? fs_write(given.bundle, text, strlen(text), e) : err_set(e, -EIO, "cannot create the bundle");
	free(text);
	free(list);
	free(removed);
	json_decref(o);
	return rc;
}

static int answer(const struct machine *m, const struct text_style *style)
{
	struct doctor *d = doctor_judge(m);
	int status = doctor_exit(d);

	if (given.json)
		doctor_json(stdout, d, m, given.recommend);
	else
		doctor_text(stdout, d, m, style, given.recommend);
	doctor_free(d);
	return cmd_finish(status);
}

static int read_numbers(struct machine_from *from, struct err *e)
{
	uint64_t n = LIMIT_SECONDS;

	if (given.timeout && (!str_u64(given.timeout, &n) || n < 1 || n > 600))
		return err_set(e, -EINVAL, "--timeout takes seconds from 1 to 600, not '%s'", given.timeout);
	from->limit_ns = n * 1000000000u;
	if (given.pid && (!str_u64(given.pid, &n) || n < 1 || n > PID_MAX))
		return err_set(e, -EINVAL, "--pid takes a process ID, not '%s'", given.pid);
	from->pid = given.pid ? (uint32_t)n : 0;
	return 0;
}

/* Why the environment that --python named cannot be checked; NULL = it can. */
static const char *no_environment(const struct machine *m)
{
	const char *why = m->envs.reason;

	if (m->envs.n_envs && m->envs.env[0].prefix)
		return NULL;
	if (m->envs.n_envs)
		why = m->envs.env[0].reason;
	return why ? why : "there is no Python environment";
}

/* Collects or reads; -errno with `e` filled. */
static int get_machine(struct machine *m, const char *bundle, struct err *e)
{
	struct machine_from from = {.root = given.root ? given.root : "", .python = given.python};

	if (bundle)
		return machine_load(m, bundle, e);
	if (read_numbers(&from, e))
		return -EINVAL;
	progress_begin("checking this machine and querying its driver");
	machine_collect(m, &from);
	progress_end();
	if (from.pid && !m->process.known)
		return err_set(e, -ESRCH, "cannot inspect process %u: %s", from.pid,
			       m->process.reason ? m->process.reason : "?");
	if (from.python && no_environment(m))
		return err_set(e, -EINVAL, "--python %s: %s", from.python, no_environment(m));
	return 0;
}

static int check_options(int given_bundles, const char *path, struct err *e, enum color *color)
{
	if (given_bundles > 1)
		return err_set(e, -EINVAL, "doctor takes one bundle, not %d", given_bundles);
	if (path && (given.python || given.pid || given.bundle || given.root))
		return err_set(e, -EINVAL, "--python, --pid, --root and --bundle cannot be used with a bundle");
	if (given.root && given.pid)
		return err_set(e, -EINVAL, "--root cannot be used with --pid");
	if (given.root && !fs_is_dir(given.root))
		return err_set(e, -ENOENT, "--root takes a folder, and '%s' is not one", given.root);
	if (given.python && given.pid)
		return err_set(e, -EINVAL, "--pid checks the process's own environment: --python cannot be used with it");
	if (given.python && !given.root && !fs_exists(given.python))
		return err_set(e, -ENOENT, "--python: '%s' does not exist", given.python);
	if (given.color && !term_parse_color(given.color, color))
		return err_set(e, -EINVAL, "--color takes auto, always or never, not '%s'", given.color);
	return 0;
}

#define GPUS_MAX 8

static int described_gpus(struct described *d, int *cc, struct pool *pool, struct err *e)
{
	char *text = pool_strdup(pool, given.gpu), *rest = NULL, shown[128];

	d->ask.cc = cc;
	d->ask.forward = true;
	for (char *name = strtok_r(text, ";", &rest); name; name = strtok_r(NULL, ";", &rest)) {
		const struct compat_gpu *g = compat_gpu_by_words(name, shown, sizeof(shown));

		if (!g) {
			err_set(e, -EINVAL, "there is no GPU '%s' in cuwhy's table", name);
			return err_hint(
				e, "for example 'RTX 5090', 'GTX 1080 Ti', A100, 'RTX A6000', or its capability: 12.0");
		}
		if (d->ask.n_cc == GPUS_MAX)
			return err_set(e, -E2BIG, "at most %d GPUs at once", GPUS_MAX);
		cc[d->ask.n_cc++] = g->cc;
		d->ask.forward &= compat_class_forward(g->class);
		d->jetson |= g->class == COMPAT_CLASS_JETSON;
		if (d->jetson || strncasecmp(shown, "GH", 2) == 0 ||
		    strncasecmp(shown, "GB", 2) == 0)	/* Grace: an ARM processor beside it */
			d->ask.machine = COMPAT_AARCH64;
		d->gpus = d->gpus ? pool_printf(pool, "%s, %s", d->gpus, shown) : pool_strdup(pool, shown);
	}
	return d->gpus ? 0 : err_set(e, -EINVAL, "--gpu takes the name of a GPU");
}

static int described_driver(struct described *d, struct err *e)
{
	static const char *const oses[] = {"linux", "windows", "wsl"};
	size_t i = 0;

	while (given.os && i < 3 && strcmp(given.os, oses[i]) != 0)
		i++;
	if (i == 3)
		return err_set(e, -EINVAL, "--os takes linux, windows or wsl, not '%s'", given.os);
	d->os = (enum described_os)i;
	d->ask.windows = d->os != DESCRIBED_LINUX;
	d->driver = given.driver;
	if (given.driver && !compat_driver_parse(given.driver, &d->ask.driver)) {
		err_set(e, -EINVAL, "--driver takes a version, not '%s'", given.driver);
		return err_hint(e, "for example 570 or 580.65.06, as nvidia-smi shows it");
	}
	if (given.driver && !strchr(given.driver, '.'))
		d->ask.driver.minor = COMPAT_ANY_RELEASE;
	return 0;
}

static int described_python(struct described *d, struct err *e)
{
	int major, minor, end = 0;

	if (!given.python)
		return 0;
	if (sscanf(given.python, "%d.%d%n", &major, &minor, &end) != 2 || major != 3 || minor < 0 || minor > 99 ||
	    (given.python[end] && strcmp(given.python + end, "t") != 0))
		return err_set(e, -EINVAL, "with --gpu, --python takes a version like 3.12, not '%s'", given.python);
	d->ask.python = major * 100 + minor;
	d->ask.free_threaded = given.python[end] == 't';
	return 0;
}

static int recommend_elsewhere(const char *path)
{
	struct described d = {0};
	struct pool pool = {0};
	struct err e = {0};
	int cc[GPUS_MAX], status, rc = 0;

	if (!given.recommend || !given.gpu)
		rc = err_set(&e, -EINVAL,
			     "--gpu, --driver and --os describe another machine: they need --recommend and --gpu");
	else if (path || given.pid || given.bundle || given.root)
		rc = err_set(&e, -EINVAL, "--gpu describes another machine: no bundle, --pid, --root or --bundle can be used with it");
	if (rc == 0)
		rc = described_gpus(&d, cc, &pool, &e);
	if (rc == 0)
		rc = described_driver(&d, &e);
	if (rc == 0)
		rc = described_python(&d, &e);
	if (rc)
		status = cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	else
		status = cmd_finish((given.json ? described_json(stdout, &d) : described_print(stdout, &d))
					    ? EXIT_NOTHING
					    : EXIT_FOUND);
	pool_release(&pool);
	return status;
}

int cmd_doctor(int argc, char **argv)
{
	enum color color = COLOR_AUTO;
	struct text_style style = {0};
	struct machine m = {.pid = 0};
	struct err e = {0};
	int first = opt_parse(&usage, options, argc, argv, &e), more = 0, status;
	const char *path = first >= 0 && first < argc ? argv[first] : NULL;

	if (path) {		/* options may also follow the bundle */
		more = opt_parse(&usage, options, argc - first, argv + first, &e);
		first = more < 0 ? more : first;
	}
	if (first >= 0 && given.help) {
		opt_help(stdout, &usage, options);
		return cmd_finish(EXIT_NOTHING);
	}
	if (first >= 0 && (given.gpu || given.driver || given.os))
		return recommend_elsewhere(path);
	if (first < 0 || check_options(path ? 1 + argc - first - more : 0, path, &e, &color))
		return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	style.color = !given.json && term_color(STDOUT_FILENO, color);
	style.width = term_width(STDOUT_FILENO);
	if (given.json)
		progress_disable();
	if (get_machine(&m, path, &e) || (given.bundle && write_bundle(&m, &e)))
		status = cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	else
		status = answer(&m, &style);
	machine_release(&m);
	return status;
}
