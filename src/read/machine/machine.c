/* SPDX-License-Identifier: Apache-2.0
 * Collects everything known about this machine, and combines what its parts say (see machine.h).
 *
 * The driver is asked by the probe, in processes of their own, while files are read here.
 */
#include "read/machine/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

extern char **environ;

#define CODE_MAX	512	/* libraries with GPU code that are read */

/* A copy that the pool owns, like one from a bundle. */
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

static void library_read_code(struct machine *m, struct machine_code *c, const char *root)
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

static struct machine_code *machine_add_code(struct machine *m, size_t *cap, size_t env, const char *path)
{
	struct machine_code *grown;

	if (m->n_code == *cap) {	/* in the pool: nothing is ever freed */
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
			c = machine_add_code(m, &cap, i, env->torch.cuda_library);
			c->package = "torch";
			c->version = env->torch.version;
			c->torch = true;
			library_read_code(m, c, root);
		}
		for (size_t k = 0; k < env->n_extensions && m->n_code < CODE_MAX; k++) {
			const struct py_extension *x = &env->extension[k];

			if (!x->fatbin || x->vendor)
				continue;
			c = machine_add_code(m, &cap, i, x->path);
			c->package = x->package;
			c->version = x->version;
			library_read_code(m, c, root);
		}
	}
}

#define PTXAS_MAX	(256u << 20)
#define PTXAS_MARK	"Cuda compilation tools, release "

static int ptxas_version_in(const char *bytes, size_t len)
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

/* Which toolkit it is from, by the text it would print for --version; it is not run. */
static int ptxas_version(const char *path)
{
	struct buf b;
	int cuda;

	buf_init(&b, PTXAS_MAX);
	cuda = fs_read(path, &b, NULL) == 0 ? ptxas_version_in(b.data, b.len) : 0;
	buf_release(&b);
	return cuda;
}

static void collect_ptxas(struct machine *m, const char *root)
{
	static const char *const places[] = {"triton/backends/nvidia/bin/ptxas-blackwell",
					     "triton/backends/nvidia/bin/ptxas",
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
				m->ptxas[m->n_ptxas++] = (struct machine_ptxas){
					i, pool_strdup(&m->pool, path + strlen(root)), ptxas_version(path)};
			free(path);
			if (asked)
				break;
		}
	}
}

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

/* The environment whose packages a running program uses: the executable may be the base Python of a venv. */
static const char *python_of_process(struct machine *m)
{
	for (size_t i = 0; i < m->process.n_libraries; i++) {
		const char *path = m->process.library[i].path, *at = strstr(path, "/lib/python");

		if (at && strstr(at, "/site-packages/"))
			return pool_copy(&m->pool, path, (size_t)(at - path));
	}
	return m->process.exe;
}

/* In a tree without library folders, a missing library may well exist on the machine. */
static bool has_libraries(const char *root)
{
	static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
					      "/usr/lib/wsl/lib"};
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

/* "0000:10:1c.0", "00000000:10:1C.0": the same place. */
static bool same_bus_place(const char *a, const char *b)
{
	unsigned int x[4] = {0}, y[4] = {1};

	return a && b && sscanf(a, "%x:%x:%x.%x", &x[0], &x[1], &x[2], &x[3]) == 4 &&
	       sscanf(b, "%x:%x:%x.%x", &y[0], &y[1], &y[2], &y[3]) == 4 && !memcmp(x, y, sizeof(x));
}

static bool same_text(const char *a, const char *b)
{
	return a[0] && strcmp(a, b) == 0;
}

static size_t host_gpu_count(const struct machine *m)
{
	return m->host.n_gpu > 0 ? (size_t)m->host.n_gpu : 0;
}

size_t machine_gpus(const struct machine *m)
{
	if (m->nvml && m->nvml->n)
		return m->nvml->n;
	return m->cuda.n ? m->cuda.n : host_gpu_count(m);
}

static void gpu_find_cuda(const struct machine *m, struct machine_gpu *g)
{
	for (size_t i = 0; i < m->cuda.n && !g->cuda; i++) {
		const struct cuda_device *d = &m->cuda.device[i];

		if (!same_text(d->uuid, g->nvml->card.uuid) && !same_bus_place(d->pci, g->nvml->card.pci))
			continue;
		g->cuda = d;
		g->ordinal = (int)i;
	}
	/* bundles written by hand have neither ids nor addresses */
	if (!g->cuda && g->index < m->cuda.n && m->cuda.n == m->nvml->n && !m->cuda.device[g->index].uuid[0] &&
	    !m->cuda.device[g->index].pci[0]) {
		g->cuda = &m->cuda.device[g->index];
		g->ordinal = (int)g->index;
	}
}

static void gpu_find_host(const struct machine *m, struct machine_gpu *g)
{
	const char *pci = g->nvml ? g->nvml->card.pci : g->cuda ? g->cuda->pci : NULL;

	for (size_t i = 0; pci && i < host_gpu_count(m) && !g->host; i++)
		if (same_bus_place(m->host.gpu[i].address, pci))
			g->host = &m->host.gpu[i];
	if (!g->host && host_gpu_count(m) == 1 && machine_gpus(m) == 1)
		g->host = &m->host.gpu[0];
}

static int capability(int64_t major, int64_t minor)
{
	return major > 0 && major < 100 && minor >= 0 && minor < 10 ? (int)(major * 10 + minor) : 0;
}

/* The driver's answer first; then what the tables say about the name or the PCI id. */
static void gpu_find_kind(struct machine_gpu *g)
{
	const struct compat_gpu *by_pci = NULL, *by_name;
	const struct gpu_details *d = g->nvml ? &g->nvml->details : NULL;

	if (g->cuda)
		g->cc = capability(g->cuda->cc_major, g->cuda->cc_minor);
	if (!g->cc && d)
		g->cc = capability(d->cc_major, d->cc_minor);
	by_name = g->name ? compat_gpu_by_name(g->name) : NULL;
	if (g->name)
		g->class = compat_class_of(g->name);
	if (by_name) {
		g->cc = g->cc ? g->cc : by_name->cc;
		g->class = g->class ? g->class : by_name->class;
	}
	if (g->host && g->host->device > 0 && g->host->device <= UINT16_MAX && (!g->cc || !g->name))
		by_pci = compat_gpu_by_pci((uint16_t)g->host->device);
	if (!by_pci)
		return;
	g->cc = g->cc ? g->cc : by_pci->cc;
	g->class = g->class ? g->class : by_pci->class;
	g->name = g->name ? g->name : by_pci->name;
}

void machine_gpu(const struct machine *m, size_t i, struct machine_gpu *g)
{
	*g = (struct machine_gpu){.index = i, .ordinal = -1};
	if (m->nvml && i < m->nvml->n) {
		g->nvml = &m->nvml->gpu[i];
		g->index = g->nvml->card.index;
		g->name = g->nvml->card.name[0] ? g->nvml->card.name : NULL;
		gpu_find_cuda(m, g);
	} else if (i < m->cuda.n) {
		g->cuda = &m->cuda.device[i];
		g->ordinal = (int)i;
	} else if (i < host_gpu_count(m)) {
		g->host = &m->host.gpu[i];
	}
	if (!g->name && g->cuda && g->cuda->name[0])
		g->name = g->cuda->name;
	if (!g->host)
		gpu_find_host(m, g);
	if (!g->name && g->host)
		g->name = g->host->model;
	gpu_find_kind(g);
}

struct compat_driver machine_driver(const struct machine *m)
{
	const char *const from[] = {m->nvml ? m->nvml->driver : NULL, m->host.kernel.version,
				    m->envs.libcuda.compat ? NULL : m->envs.libcuda.version};
	struct compat_driver d = {0};

	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++)
		if (from[i] && compat_driver_parse(from[i], &d))
			return d;
	return (struct compat_driver){0};
}

int machine_driver_cuda(const struct machine *m)
{
	if (m->cuda.library.version > 0)
		return m->cuda.library.version;
	if (m->nvml && m->nvml->cuda > 0)
		return m->nvml->cuda;
	return compat_driver_cuda(machine_driver(m));
}

int machine_newest_branch(const struct machine *m)
{
	size_t n = machine_gpus(m);
	struct machine_gpu g;
	int newest = 0, branch;

	for (size_t i = 0; i < n && i < MACHINE_GPUS_MAX; i++) {
		machine_gpu(m, i, &g);
		branch = compat_branch_for(g.cc);
		if (branch && (!newest || branch < newest))
			newest = branch;
	}
	return newest;
}

const struct pyenv *machine_env(const struct machine *m, size_t *index)
{
	*index = 0;
	for (size_t i = 0; i < m->envs.n_envs; i++) {
		/* with --python that one is meant, whatever is in it */
		if (!m->envs.env[i].torch.dir && !(m->envs.env[i].origin & PYENV_ASKED))
			continue;
		*index = i;
		return &m->envs.env[i];
	}
	return m->envs.n_envs ? &m->envs.env[0] : NULL;
}

enum compat_machine machine_arch(const struct machine *m)
{
	return m->host.os.arch && strcmp(m->host.os.arch, "aarch64") == 0 ? COMPAT_AARCH64 : COMPAT_X86_64;
}

void machine_ask(const struct machine *m, const struct pyenv *env, int *cc, struct compat_ask *ask)
{
	size_t n = machine_gpus(m);
	struct machine_gpu g;

	*ask = (struct compat_ask){.driver = machine_driver(m), .cc = cc, .forward = n > 0};
	ask->machine = machine_arch(m);
	if (env && env->major > 0 && env->minor >= 0)
		ask->python = env->major * 100 + env->minor;
	for (size_t i = 0; i < n && ask->n_cc < MACHINE_GPUS_MAX; i++) {
		machine_gpu(m, i, &g);
		/* those that CUDA hides from this program need not work */
		if (m->cuda.n && !g.cuda)
			continue;
		ask->forward &= compat_class_forward(g.class);
		if (g.cc)
			cc[ask->n_cc++] = g.cc;
	}
}
