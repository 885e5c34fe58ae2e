/* SPDX-License-Identifier: Apache-2.0
 * The environment variables that the recorder reads.
 *
 * getenv may crash while another thread calls setenv (before glibc 2.41), and it is not our place to add such a race to
 * a program. So the environment is read when we are loaded, before the program has threads. What the program sets later
 * is still evidence (os.environ["CUDA_VISIBLE_DEVICES"] after CUDA has started): that is read through the kernel, which
 * returns an error for memory that was freed meanwhile instead of raising a signal.
 */
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rec.h"

#define PAGE		4096u
#define VALUE_MAX	512
#define AT_A_TIME	32	/* variables per system call */
#define HEAD		48	/* bytes of each, enough for the longest name */
#define MOST		8192	/* variables */

/* This table is their documentation. */
static const struct {
	const char *name;
	const char *meaning;
} vars[] = {
	{"CUWHY_SOCK", "socket of the `cuwhy run` that keeps the recording; unset: do nothing"},
	{"CUWHY_MEMORY_MB", "memory limit for the recording of one process (default 64)"},
	{ "CUWHY_NO_FRAMES", "set: do not walk Python frames" },
	{"CUWHY_SIM", "the simulated GPU is in use"},
	{"CUWHY_CORE_DUMP", "folder for GPU core dumps; unset: none are requested"},
	{"CUWHY_NO_VALUES", "set: do not keep what is copied to the GPU"},
	{"CUWHY_DUMP_MEMORY", "set: GPU core dumps contain global memory"},
	{"CUWHY_HANG", "folder for the pipe that requests dumps of a running GPU; set: mark waiting threads"},
	{"CUWHY_GUARD", "set: every allocation in a mapping of its own; options, separated by commas"},
	{"CUWHY_MEMORY_TRACE", "set: keep every allocator event"},
	{"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "set: the user's own settings are respected"},
	{"CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", "likewise"},
	{"CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION", "likewise"},
	{"CUDA_ENABLE_USER_TRIGGERED_COREDUMP", "likewise"},
	{"CUDA_COREDUMP_FILE", "likewise"},
	{"CUDA_COREDUMP_PIPE", "likewise"},
	{"CUDA_LAUNCH_BLOCKING", "set: no core dumps on faults"},
	{"CUDA_COREDUMP_GENERATION_FLAGS", "set: the user's own settings are respected"},
	{"CUDA_LOG_FILE", "set: make no queries that the driver would log"},
	{"CUDA_VISIBLE_DEVICES", "kept as evidence"},
	{"PYTORCH_ALLOC_CONF", "kept as evidence"},
	{"PYTORCH_CUDA_ALLOC_CONF", "kept as evidence"},
	{"RANK", "kept to name the rank"},
	{"LOCAL_RANK", "kept to name the rank"},
	{"WORLD_SIZE", "kept to name the rank"},
};
#define N_VARS (sizeof(vars) / sizeof(vars[0]))

struct env_value { bool is_set; char text[VALUE_MAX]; };
static struct env_value known[N_VARS];

const char *rec_getenv(const char *name)
{
	for (size_t i = 0; i < N_VARS; i++)
		if (strcmp(vars[i].name, name) == 0)
			return known[i].is_set ? known[i].text : NULL;
	return NULL;
}

void env_copy(const char *name, char *to, size_t size)
{
	const char *v = rec_getenv(name);

	v = v ? v : CW_NOT_SET;
	text_copy(to, size, v, strlen(v));
}

/* The variable that "NAME=value" sets, -1: none of ours. */
static int var_of(const char *entry)
{
	for (size_t i = 0; i < N_VARS; i++) {
		size_t n = strlen(vars[i].name);

		if (entry[0] == vars[i].name[0] && strncmp(entry, vars[i].name, n) == 0 && entry[n] == '=')
			return (int)i;
	}
	return -1;
}

static const char *value_in(const char *entry, int var)
{
	return entry + strlen(vars[var].name) + 1;
}

/* Before the program has threads: no other way of reading is needed. */
void env_load(void)
{
	int v;

	for (char **e = environ; e && *e; e++) {
		v = var_of(*e);
		if (v < 0 || known[v].is_set)	/* getenv returns the first, too */
			continue;
		known[v].is_set = true;
		text_copy(known[v].text, VALUE_MAX, value_in(*e, v), strlen(value_in(*e, v)));
	}
}

/* A page is either there or not: reading never goes on to the next one, where a string or list need not continue. */
static size_t within_page(const void *from, size_t n)
{
	size_t left = PAGE - (uintptr_t)from % PAGE;

	return n < left ? n : left;
}

/* A string, as far as it can be read and fits. */
static void read_string(char *to, size_t size, const char *from)
{
	size_t n = 0, more;

	memset(to, 0, size);
	while (n + 1 < size && !memchr(to, '\0', n)) {
		more = within_page(from + n, size - 1 - n);
		if (!rec_read_memory(to + n, from + n, more))
			break;
		n += more;
	}
	to[size - 1] = '\0';
}

/* The beginnings of several strings with one system call; one by one where that fails. */
static void read_heads(char head[][HEAD], char *const *entry, size_t n)
{
	struct iovec mine[AT_A_TIME], theirs[AT_A_TIME];
	ssize_t all = 0;

	for (size_t i = 0; i < n; i++) {
		size_t len = within_page(entry[i], HEAD - 1);

		mine[i] = (struct iovec){head[i], len};
		theirs[i] = (struct iovec){entry[i], len};
		all += (ssize_t)len;
	}
	memset(head, 0, n * HEAD);
	if (syscall(SYS_process_vm_readv, getpid(), mine, n, theirs, n, 0UL) == all) {
		for (size_t i = 0; i < n; i++)	/* those that go on in the next page */
			if (mine[i].iov_len < HEAD - 1 && !memchr(head[i], '\0', mine[i].iov_len))
				read_string(head[i], HEAD, entry[i]);
		return;
	}
	for (size_t i = 0; i < n; i++)
		read_string(head[i], HEAD, entry[i]);
}

/* Pointers of the list from `from` on: 0 = its end, -1 = it could not be read. */
static int read_list(char **entry, char *const *from)
{
	size_t bytes = within_page(from, AT_A_TIME * sizeof(*entry));
	int n = 0;

	if (!from || !rec_read_memory(entry, from, bytes))
		return -1;
	while (n < (int)(bytes / sizeof(*entry)) && entry[n])
		n++;
	return n;
}

/* Calls `found` for each of our variables. False: the environment could not be read. */
static bool env_read(void (*found)(int var, const char *value, void *data), void *data)
{
	char *const *list = (char *const *)__atomic_load_n(&environ, __ATOMIC_RELAXED);
	char *entry[AT_A_TIME], head[AT_A_TIME][HEAD];
	int n, v;

	for (int all = 0; all < MOST; all += n) {
		n = read_list(entry, list + all);
		if (n <= 0)
			return n == 0;
		read_heads(head, entry, (size_t)n);
		for (int i = 0; i < n; i++)
			if ((v = var_of(head[i])) >= 0)
				found(v, value_in(entry[i], v), data);
	}
	return true;
}

static void learn(int var, const char *value, void *data)
{
	struct env_value *now = data;

	if (now[var].is_set)
		return;
	now[var].is_set = true;
	read_string(now[var].text, VALUE_MAX, value);
}

/* Its own variables the recorder takes from the time it was loaded: they are not the program's to change. */
static bool is_ours(size_t var)
{
	return strncmp(vars[var].name, "CUWHY_", 6) == 0;
}

void env_look(void)
{
	static struct env_value now[N_VARS];

	memset(now, 0, sizeof(now));
	if (!env_read(learn, now))
		return;
	for (size_t i = 0; i < N_VARS; i++)
		if (!is_ours(i))
			known[i] = now[i];
}

struct wanted { const char *name; char *to; size_t size; bool found; };

static void learn_one(int var, const char *value, void *data)
{
	struct wanted *w = data;

	if (w->found || strcmp(vars[var].name, w->name) != 0)
		return;
	w->found = true;
	read_string(w->to, w->size, value);
}

void env_copy_now(const char *name, char *to, size_t size)
{
	struct wanted w = {name, to, size, false};

	if (env_read(learn_one, &w) && !w.found)
		text_copy(to, size, CW_NOT_SET, strlen(CW_NOT_SET));
	else if (!w.found)
		env_copy(name, to, size);
}
