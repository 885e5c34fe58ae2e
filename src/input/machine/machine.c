/* SPDX-License-Identifier: Apache-2.0
 * Collects all that is known of this machine (see machine.h).
 *
 * The driver is asked by the probe, in processes of their own, while files are read here.
 */
#include "input/machine/machine.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "base/banned.h"

extern char **environ;

#define CODE_MAX	512	/* libraries with GPU code that are looked into */

/* --- the driver ------------------------------------------------------------------------------- */

/* A copy that the pool owns, so that it is the same thing as one from a bundle. */
static struct gpu_usage *keep_usage(struct pool *pool, struct gpu_usage *u)
{
	struct gpu_usage *copy = pool_alloc(pool, sizeof(*copy));

	*copy = *u;
	copy->gpu = pool_alloc(pool, (u->n + 1) * sizeof(*u->gpu));
	for (size_t i = 0; i < u->n; i++) {
		copy->gpu[i] = u->gpu[i];
		copy->gpu[i].holder = pool_alloc(pool, (u->gpu[i].n + 1) * sizeof(*u->gpu[i].holder));
		for (size_t k = 0; k < u->gpu[i].n; k++)
			copy->gpu[i].holder[k] = u->gpu[i].holder[k];
	}
	usage_free(u);
	return copy;
}

static void keep_cuda(struct pool *pool, struct cuda_answer *to, struct cuda_answer *from)
{
	*to = *from;
	to->device = pool_alloc(pool, (from->n + 1) * sizeof(*from->device));
	for (size_t i = 0; i < from->n; i++)
		to->device[i] = from->device[i];
	cuda_answer_release(from);
}

/* --- GPU code --------------------------------------------------------------------------------- */

static void read_code(struct machine *m, struct machine_code *c, const char *root)
{
	struct err e = {0};
	char *path = xasprintf("%s%s", root, c->path);
	struct fatbin *f = fatbin_read(path, &e);

	free(path);
	c->fatbin = f;
	if (!f) {
		c->reason = pool_strdup(&m->pool, e.msg);
		return;
	}
	m->owned = xgrow(m->owned, m->n_owned, &m->cap_owned, sizeof(*m->owned));
	m->owned[m->n_owned++] = f;
}

static struct machine_code *add_code(struct machine *m, size_t *cap, size_t env, const char *path)
{
	struct machine_code *grown;

	if (m->n_code == *cap) {	/* of the pool: nothing is ever taken back */
		*cap = *cap ? *cap * 2 : 16;
		grown = pool_alloc(&m->pool, *cap * sizeof(*grown));
		for (size_t i = 0; i < m->n_code; i++)
			grown[i] = m->code[i];
		m->code = grown;
	}
	m->code[m->n_code] = (struct machine_code){.env = env, .path = path};
	return &m->code[m->n_code++];
}

static void collect_code(struct machine *m, const char *root)
{
	struct machine_code *c;
	size_t cap = 0;

	for (size_t i = 0; i < m->envs.n_envs; i++) {
		const struct pyenv *env = &m->envs.env[i];

		if (env->torch.cuda_library) {
			c = add_code(m, &cap, i, env->torch.cuda_library);
			c->package = "torch";
			c->version = env->torch.version;
			c->torch = true;
			read_code(m, c, root);
		}
		for (size_t k = 0; k < env->n_extensions && m->n_code < CODE_MAX; k++) {
			const struct py_extension *x = &env->extension[k];

			if (!x->fatbin || x->vendor)
				continue;
			c = add_code(m, &cap, i, x->path);
			c->package = x->package;
			c->version = x->version;
			read_code(m, c, root);
		}
	}
}

/* --- Triton's assembler ----------------------------------------------------------------------- */

#define PTXAS_MAX	(256u << 20)
#define PTXAS_MARK	"Cuda compilation tools, release "

static int version_in(const char *bytes, size_t len)
{
	const char *at = memmem(bytes, len, PTXAS_MARK, strlen(PTXAS_MARK));
	char text[16], *end;
	long major, minor;
	size_t left;

	if (!at)
		return 0;
	at += strlen(PTXAS_MARK);
	left = len - (size_t)(at - bytes);
	left = left < sizeof(text) - 1 ? left : sizeof(text) - 1;
	memcpy(text, at, left);
	text[left] = '\0';
	major = strtol(text, &end, 10);
	minor = *end == '.' ? strtol(end + 1, NULL, 10) : -1;
	return major > 0 && major < 100 && minor >= 0 && minor < 100 ? (int)(major * 1000 + minor * 10) : 0;
}

/* Which toolkit it is of, from the words that it prints for --version; it is not run. */
static int ptxas_version(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), cuda = 0;
	struct stat st;
	char *bytes;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= PTXAS_MAX) {
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (bytes != MAP_FAILED) {
			cuda = version_in(bytes, (size_t)st.st_size);
			munmap(bytes, (size_t)st.st_size);
		}
	}
	close(fd);
	return cuda;
}

static void collect_ptxas(struct machine *m, const char *root)
{
	static const char *const places[] = {"triton/backends/nvidia/bin/ptxas-blackwell", "triton/backends/nvidia/bin/ptxas",
					     "triton/common/../third_party/cuda/bin/ptxas"};
	const char *asked = variables_get(&m->variables, "TRITON_PTXAS_PATH");
	const struct py_package *p;
	char *path;

	m->ptxas = pool_alloc(&m->pool, (m->envs.n_envs * 4 + 1) * sizeof(*m->ptxas));
	for (size_t i = 0; i < m->envs.n_envs; i++) {
		p = pyenv_package(&m->envs.env[i], "triton");
		for (size_t k = 0; p && k < sizeof(places) / sizeof(places[0]); k++) {
			path = asked ? xasprintf("%s%s", root, asked) : xasprintf("%s%s/%s", root, p->folder, places[k]);
			if (access(path, F_OK) == 0)
				m->ptxas[m->n_ptxas++] = (struct machine_ptxas){i, pool_strdup(&m->pool, path + strlen(root)),
										ptxas_version(path)};
			free(path);
			if (asked)
				break;
		}
	}
}

/* --- all of it -------------------------------------------------------------------------------- */

static const char *const *environment(struct machine *m, const struct machine_from *from)
{
	if (from->pid)
		return m->process.environ;
	if (from->environ)
		return from->environ;
	return from->root[0] ? variables_read(&m->pool, from->root, 0) : (const char *const *)environ;
}

static const char *current_folder(struct machine *m, const struct machine_from *from)
{
	char *cwd;
	const char *kept;

	if (from->pid)
		return m->process.cwd;
	cwd = from->root[0] ? NULL : getcwd(NULL, 0);
	kept = cwd ? pool_strdup(&m->pool, cwd) : NULL;
	free(cwd);
	return kept;
}

/* The environment that a running program has its packages from: the executable may be the base Python of a venv. */
static const char *python_of_process(struct machine *m)
{
	for (size_t i = 0; i < m->process.n_libraries; i++) {
		const char *path = m->process.library[i].path, *at = strstr(path, "/lib/python");

		if (at && strstr(at, "/site-packages/"))
			return pool_copy(&m->pool, path, (size_t)(at - path));
	}
	return m->process.exe;
}

/* In a tree without any folder of libraries, one that is not found may well be there on the machine. */
static bool has_libraries(const char *root)
{
	static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib"};
	bool found = !root[0];
	char *path;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !found; i++) {
		path = xasprintf("%s%s", root, folders[i]);
		found = access(path, F_OK) == 0;
		free(path);
	}
	return found;
}

static void collect_files(struct machine *m, const struct machine_from *from)
{
	const char *const *env;
	struct host_from host = {.root = from->root};
	struct pyenv_input python = {.root = from->root, .python = from->python};

	if (from->pid) {
		m->pid = from->pid;
		py_process_read(&m->process, from->root, (pid_t)from->pid);
	}
	env = environment(m, from);
	m->environ = env;
	host.env = env;
	host.cwd = python.cwd = current_folder(m, from);
	host_collect(&m->host, &m->pool, &host);
	m->bus_known = m->host.n_gpu > 0 || host_told(&m->host, "the PCI bus");
	m->nodes_known = host_told(&m->host, "/dev");
	variables_judge(&m->variables, &m->pool, env);
	if (from->no_python)
		return;
	python.environ = env;
	if (!python.python && from->pid)
		python.python = python_of_process(m);
	pyenv_scan(&m->envs, &python);
	m->libcuda_sought = has_libraries(from->root);
	collect_code(m, from->root);
	collect_ptxas(m, from->root);
}

void machine_collect(struct machine *m, const struct machine_from *from)
{
	struct probe nvml, cuda;
	struct cuda_answer answer;
	bool ask = !from->no_driver && !from->root[0];

	*m = (struct machine){.made_by = "cuwhy"};
	cuda_answer_init(&m->cuda);
	if (ask) {
		probe_start_as(&nvml, PROBE_ASK_DETAILS, from->limit_ns);
		probe_start_as(&cuda, PROBE_ASK_CUDA, from->limit_ns);
	}
	collect_files(m, from);
	if (!ask)
		return;
	probe_wait(&cuda);
	probe_finish_cuda(&cuda, &answer);
	keep_cuda(&m->pool, &m->cuda, &answer);
	m->cuda_asked = true;
	probe_wait(&nvml);
	m->nvml = keep_usage(&m->pool, probe_finish(&nvml));
}

void machine_release(struct machine *m)
{
	while (m->n_owned)
		fatbin_free(m->owned[--m->n_owned]);
	free(m->owned);
	pyenv_release(&m->envs);
	if (m->pid && !m->bundle)
		py_process_release(&m->process);
	pool_release(&m->pool);
}
