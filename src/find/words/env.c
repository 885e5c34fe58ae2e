/* SPDX-License-Identifier: Apache-2.0
 * The machine as a text mentions it (see env.h).
 */
#include "find/words/env.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "compat/compat.h"
#include "read/text/said.h"

#define SHAPE_SMI 1	/* of nvidia-smi's memory, among the shapes of lines */

/* The version that begins here or after a few characters: "v470.57", " : 12.1". */
static size_t version_at(const char *s, char *to, size_t size)
{
	size_t n;

	s += strspn(s, " :=v\"'(");
	n = strspn(s, "0123456789.");
	while (n && s[n - 1] == '.')
		n--;
	if (!n || n >= size || !isdigit((unsigned char)*s))
		return 0;
	memcpy(to, s, n);
	to[n] = '\0';
	return n;
}

/* "12.4" -> 12040. 0 when it is not a version. */
static int cuda_number(const char *s)
{
	char version[16], *end;
	long major, minor = 0;

	if (!version_at(s, version, sizeof(version)))
		return 0;
	major = strtol(version, &end, 10);
	if (*end == '.')
		minor = strtol(end + 1, NULL, 10);
	return major >= 5 && major < 40 && minor < 30 ? (int)(major * 1000 + minor * 10) : 0;
}

/* A hash of the letters. */
static uint32_t hash_letters(const char *s, const char *end)
{
	uint32_t h = 2166136261u;

	for (; s < end; s++)
		if (isalpha((unsigned char)*s))
			h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

static void read_driver(struct text_env *e, const char *s)
{
	char version[32];
	const char *at;

	for (size_t row = 0; !e->driver[0] && (at = says_before(s, SAID_driver, &row)) != NULL;)
		if (version_at(at, version, sizeof(version)) >= 3 && strtol(version, NULL, 10) >= 300 &&
		    strtol(version, NULL, 10) < 2000)
			str_copy(e->driver, sizeof(e->driver), version);
}

/* The first of these words that a CUDA version follows; 0: none. */
static int cuda_after(const char *s, enum said_list words)
{
	const char *at;
	int cuda = 0;

	for (size_t row = 0; !cuda && (at = says_before(s, words, &row)) != NULL;)
		cuda = cuda_number(at);
	return cuda;
}

static void read_cuda(struct text_env *e, const char *s)
{
	int driver = cuda_after(s, SAID_driver_cuda), torch = cuda_after(s, SAID_torch_cuda);
	const char *at, *from;

	if (says_at(s, SAID_driver_number, &at))
		e->driver_cuda = (int)strtol(at, NULL, 10);
	e->driver_cuda = driver ? driver : e->driver_cuda;
	e->torch_cuda = torch ? torch : e->torch_cuda;
	if (says_at(s, SAID_nvcc, &at) || (!e->nvcc[0] && says_at(s, SAID_nvcc_said, &at) && cuda_number(at)))
		version_at(at, e->nvcc, sizeof(e->nvcc));
	for (from = s; !e->cuda && (from = says_on(s, from, SAID_some_cuda, &at)) != NULL; from++)
		e->cuda = cuda_number(at - 1);
}

/* "2.7.0.dev20250310+cu124" */
static size_t torch_version_length(const char *s)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || s[n] == '.' || s[n] == '+')
		n++;
	while (n && s[n - 1] == '.')
		n--;
	return n;
}

static void set_torch(struct text_env *e, const char *s)
{
	const char *cu;
	size_t n;

	s += strspn(s, " :=v\"'-");
	n = torch_version_length(s);
	if (n < 3 || n >= sizeof(e->torch) || !isdigit((unsigned char)s[0]) || s[1] != '.' || strtol(s, NULL, 10) > 3)
		return;
	memcpy(e->torch, s, n);
	e->torch[n] = '\0';
	cu = strstr(e->torch, "+cu");
	if (cu && isdigit((unsigned char)cu[3]) && isdigit((unsigned char)cu[4])) {
		long all = strtol(cu + 3, NULL, 10);

		if (all >= 75 && all < 400)
			e->torch_cuda = (int)(all / 10 * 1000 + all % 10 * 10);
	}
}

static void read_torch(struct text_env *e, const char *s)
{
	const char *at;

	for (size_t row = 0; !e->torch[0] && (at = says_before(s, SAID_torch, &row)) != NULL;)
		set_torch(e, at);
	if (!e->torch[0] && (e->asked_version || ((s[0] == '\'' || s[0] == '"') && says(s, SAID_local_version))))	/* the answer to torch.__version__ */
		set_torch(e, s);
	e->asked_version = says(s, SAID_torch_version);
	if (!e->torch_cuda && says_at(s, SAID_torch_tag, &at)) {
		long all = strtol(at, NULL, 10);

		if (all >= 90 && all < 400)
			e->torch_cuda = (int)(all / 10 * 1000 + all % 10 * 10);
	}
}

/* Where such a name begins, as a word of its own; NULL: nowhere. */
static const char *find_product(const char *s, enum said_list names, bool whole)
{
	const char *after;

	for (const char *at = s; (at = says_on(s, at, names, &after)) != NULL; at++)
		if ((at == s || (!isalnum((unsigned char)at[-1]) && !strchr("_/.", at[-1]))) &&
		    !(whole && (isalnum((unsigned char)*after) || *after == '_')))
			return at;
	return NULL;
}

static const char *find_gpu(const char *s)
{
	const char *line = find_product(s, SAID_gpu_line, false), *model = find_product(s, SAID_gpu_model, true);

	return !line || (model && model < line) ? model : line;
}

static bool has_digit(const char *s, size_t n)
{
	while (n--)
		if (isdigit((unsigned char)s[n]))
			return true;
	return false;
}

/* "3090", "A100-SXM4-80GB", "RTX4090": short, with a digit, and only characters that such names have. */
static bool is_gpu_model(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '-')
			return false;
	return n <= 20 && has_digit(s, n);
}

/* "3g.20gb" */
static bool is_mig_slice(const char *s, size_t n)
{
	return n >= 5 && isdigit((unsigned char)s[0]) && s[1] == 'g' && s[2] == '.' && isdigit((unsigned char)s[3]);
}

/* A word that occurs in GPU names; a name has only one number. */
static bool gpu_name_goes_on(const char *s, size_t n, bool model)
{
	if (strspn(s, "0123456789") >= n)
		return !model && is_gpu_model(s, n);
	return compat_name_word(s, n) || (!model && is_gpu_model(s, n)) || is_mig_slice(s, n) ||
	       str_starts(s, "with Max-Q");
}

/* Length of the name that begins here; 0 when only some of its words are there ("RTX cards"). */
static size_t gpu_name_length(const char *s)
{
	static const char ends[] = " |,(;:\"'`)[]{}<>!?\t";
	bool model = false, whole = says(s, SAID_gpu_whole);
	size_t len = 0, at = 0;

	for (;;) {
		size_t n = strcspn(s + at, ends);

		while (n && s[at + n - 1] == '.')
			n--;
		if (!n || (at && !gpu_name_goes_on(s + at, n, model)))
			break;
		model |= has_digit(s + at, n);
		len = at + n;
		if (s[len] != ' ')
			break;
		at = len + 1;
	}
	return model || whole ? len : 0;
}

static void read_capabilities(struct text_env *e, const char *s)
{
	int major = 0, minor = 0;
	const char *at;
	size_t n;

	for (size_t row = 0; (at = says_before(s, SAID_capability, &row)) != NULL;) {
		if (sscanf(at, "sm_%d", &major) == 1)
			e->capability = major;
		else if (sscanf(at, "%d.%d", &major, &minor) == 2)
			e->capability = major * 10 + minor;
	}
	/* "- 7.5 which supports hardware CC >=7.5,<8.0": the list of what PyTorch was built for; the dash may have gone with a logger's prefix */
	if (says(s, SAID_hardware_cc) && sscanf(s + strspn(s, "- "), "%d.%d", &major, &minor) == 2 &&
	    (!e->capability_min || major * 10 + minor < e->capability_min))
		e->capability_min = major * 10 + minor;
	if (says_at(s, SAID_arch_list, &at)) {
		n = strcspn(at, ".\n");
		str_copy(e->arch_list, n + 1 < sizeof(e->arch_list) ? n + 1 : sizeof(e->arch_list), at);
	}
	if (says_at(s, SAID_capability_min, &at) && sscanf(at, "%d.%d", &major, &minor) == 2)
		e->capability_min = major * 10 + minor;
}

/* "GPU 3: NVIDIA A100", "2x RTX 4090" */
static void read_gpu_count(struct text_env *e, const char *s, const char *name)
{
	const char *gpu = strstr(s, "GPU ");

	if (gpu && gpu < name && isdigit((unsigned char)gpu[4]) && strtol(gpu + 4, NULL, 10) + 1 > e->gpus)
		e->gpus = (int)strtol(gpu + 4, NULL, 10) + 1;
	if (name - s >= 3 && (name[-2] == 'x' || name[-2] == 'X') && isdigit((unsigned char)name[-3]) && name[-3] > '0')
		e->gpus = name[-3] - '0';
}

static void read_gpu_name(struct text_env *e, const char *s)
{
	const char *at = find_gpu(s);
	size_t n;

	read_capabilities(e, s);
	if (!at)
		return;
	if (!e->gpu[0]) {
		n = gpu_name_length(at);
		str_copy(e->gpu, n + 1 < sizeof(e->gpu) ? n + 1 : sizeof(e->gpu), at);
	}
	read_gpu_count(e, s, at);
}

/* "root@3f2a90b1c44d:/work# ": a container's name is the beginning of its id. */
static bool docker_prompt(const char *s)
{
	const char *at = strchr(s, '@');

	return at && strspn(at + 1, "0123456789abcdef") == 12 && (at[13] == ':' || at[13] == ' ');
}

static void read_launcher(struct text_env *e, const char *s)
{
	const char *at;
	long n;

	for (size_t row = 0;
	     !e->nproc && !says(s, SAID_processes_of_all) && (at = says_before(s, SAID_processes, &row)) != NULL;) {
		n = strtol(at + strspn(at, "=: "), NULL, 10);
		e->nproc = isdigit((unsigned char)at[strspn(at, "=: ")]) && n < 100000 ? (int)n : 0;
	}
}

/* "CUDA_VISIBLE_DEVICES=0,1", `os.environ["CUDA_VISIBLE_DEVICES"] = "0"`, "CUDA_VISIBLE_DEVICES to 3" */
static void read_visible(struct text_env *e, const char *s)
{
	const char *at;
	size_t n;

	if (!says_at(s, SAID_visible, &at))
		return;
	at += strspn(at, "\"'] :");
	if (*at == '=' || *at == ',')
		at += strspn(at, " =,\"'");
	else if (says(at, SAID_to_value))
		at += 3 + strspn(at + 3, "\"'");
	else
		return;
	n = strcspn(at, " \"';)") + 1;
	e->visible_set = true;
	str_copy(e->visible, n < sizeof(e->visible) ? n : sizeof(e->visible), at);
}

/* Lines of code that start CUDA. In a traceback such lines come after the ones that a script starts with. */
static bool uses_cuda(const struct text_env *e, const char *s)
{
	if (says(s, SAID_starts_cuda) && !says(s, SAID_out_of_memory))
		return true;
	return e->script && says(s, SAID_starts_cuda_in_script);
}

static void read_devices(struct text_env *e, const char *s, uint64_t number)
{
	const char *after;

	for (const char *at = s; (at = says_on(s, at, SAID_device, &after)) != NULL; at++) {
		long device = strtol(after - 1, NULL, 10);

		if (device > e->device_max && device < 64)
			e->device_max = (int)device;
	}
	for (const char *at = s; (at = says_on(s, at, SAID_mig_device, &after)) != NULL; at++)
		e->migs++;
	e->script |= says(s, SAID_script);
	if (!e->cuda_used_line && !says(s, SAID_no_code_of_user) && uses_cuda(e, s))
		e->cuda_used_line = number;
	if (!e->visible_line && says(s, SAID_sets_visible))
		e->visible_line = number;
}

/* "n = 65536": what a name in a shape stands for. */
static void read_name(struct text_env *e, const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
	const char *at = s + n;
	char *end;
	double value;

	if (!n || n >= sizeof(e->name[0].name) || isdigit((unsigned char)*s) || e->n_names == ENV_NAMES)
		return;
	at += strspn(at, " ");
	if (*at != '=' || !isdigit((unsigned char)at[1 + strspn(at + 1, " ")]))
		return;
	value = strtod(at + 1, &end);
	end += strspn(end, " ");
	if ((*end && *end != '#') || value < 0 || value > 1e12)
		return;
	memcpy(e->name[e->n_names].name, s, n);
	e->name[e->n_names].name[n] = '\0';
	e->name[e->n_names++].value = value;
}

/* A number, or a name with a known value. False when it is neither. */
static bool read_size(const struct text_env *e, const char *s, double *size, const char **end)
{
	size_t n = 0;
	char *after;

	if (isdigit((unsigned char)*s)) {
		*size = (double)strtoull(s, &after, 10);
		*end = after;
		return true;
	}
	while (isalnum((unsigned char)s[n]) || s[n] == '_')
		n++;
	for (size_t i = 0; i < e->n_names; i++)
		if (n && strlen(e->name[i].name) == n && !memcmp(e->name[i].name, s, n)) {
			*size = e->name[i].value;
			*end = s + n;
			return true;
		}
	return false;
}

/* "190x64x64x2933", "[1, 70000, 8, 32]", "(65536, 512)": at least two sizes. Returns what follows. */
static const char *read_shape(struct text_env *e, const char *line, const char *s)
{
	bool indexes = *s == '[' && s > line && (isalnum((unsigned char)s[-1]) || strchr("_])", s[-1]));	/* inputs[0] */
	double product = 1, largest = 0;
	int n = 0;
	bool listed = *s == '(' || *s == '[';
	const char *end;
	double size;

	s += listed;
	while (n < 8 && (listed || isdigit((unsigned char)*s)) && read_size(e, s, &size, &end)) {
		product *= size;
		largest = size > largest ? size : largest;
		n++;
		s = end;
		if (listed && *s == ',')
			s += 1 + (s[1] == ' ');
		else if (!listed && (*s == 'x' || *s == '*') && isdigit((unsigned char)s[1]))
			s++;
		else
			break;
	}
	if (n < (listed ? 1 : 2) || (listed && *s != ')' && *s != ']' && !(*s == ' ' || isalpha((unsigned char)*s))))
		return s;
	if (product == 0 && listed && !indexes)
		e->empty_here = true;
	if (n >= 2 && product > e->elements)
		e->elements = product;
	if (largest > e->largest)
		e->largest = largest;
	return s;
}

/* "batch 131072", "batch_size=70000", "shape[0] = 65536", "bs: 100000", "numel 3000000000". */
static void read_counts(struct text_env *e, const char *s, enum said_list words)
{
	const char *at;

	for (size_t row = 0; (at = says_before(s, words, &row)) != NULL;) {
		double n;

		at += strcspn(at, " =:");
		at += strspn(at, " =:(");
		if (!isdigit((unsigned char)*at))
			continue;
		n = strtod(at, NULL);
		if (n > e->largest && n < 1e13)
			e->largest = n;
		if (n == 0 && at[1] != '.' && !isdigit((unsigned char)at[1]) && words == SAID_count_of_all)
			e->empty_here = true;
	}
}

static void read_tensors(struct text_env *e, const char *s)
{
	const char *at = s;

	e->empty_here = false;
	if (says(s, SAID_no_tensors))
		return;
	while ((at = strpbrk(at, "(["))) {
		const char *next = isdigit((unsigned char)at[1]) || (e->n_names && isalpha((unsigned char)at[1]))
					   ? read_shape(e, s, at)
					   : at + 1;

		at = next > at ? next : at + 1;
	}
	for (at = s; (at = strchr(at, 'x')) != NULL; at++) {
		const char *from = at;

		while (from > s && isdigit((unsigned char)from[-1]))
			from--;
		if (from < at && isdigit((unsigned char)at[1]) &&
		    !(from > s && (isalnum((unsigned char)from[-1]) || from[-1] == '_')) &&
		    !(at - from == 1 && *from == '0'))
			at = read_shape(e, s, from) - 1;
	}
	read_counts(e, s, SAID_count);
	read_counts(e, s, SAID_count_of_all);
}

/* "WorkNCCL(SeqNum=8123, OpType=ALLREDUCE, …": what each rank waited for. */
static void read_collectives(struct text_env *e, const char *s)
{
	const char *at, *op;
	uint64_t n;
	uint32_t kind;

	if (!says_at(s, SAID_collective, &at) || !says_at(at, SAID_collective_kind, &op))
		return;
	n = strtoull(at, NULL, 10);
	kind = hash_letters(op, op + strcspn(op, ","));
	e->ops_differ |= e->op && e->op != kind;
	e->op = kind;
	e->seq_max = n > e->seq_max ? n : e->seq_max;
	e->seq_min = !e->seq_min || n < e->seq_min ? n : e->seq_min;
	e->ops_differ |= e->seq_max - e->seq_min > 64;
}

/* "70000", "131,072", by itself: not part of a word, a path, a float or a time. */
static void read_large_numbers(struct text_env *e, const char *s)
{
	static const char around[] = "_.:/-+#@$%\\";

	if (strlen(s) > 400 || str_starts(s, "File \""))
		return;
	for (const char *at = s; *at; at++) {
		double n = 0;
		const char *from = at;
		size_t digits = 0;

		if (!isdigit((unsigned char)*at))
			continue;
		for (; isdigit((unsigned char)*at) ||
		       (*at == ',' && digits && isdigit((unsigned char)at[1]) && isdigit((unsigned char)at[2]) &&
			isdigit((unsigned char)at[3]) && !isdigit((unsigned char)at[4]));
		     at++)
			if (*at != ',') {
				n = n * 10 + (*at - '0');
				digits++;
			}
		if ((from == s || (!isalnum((unsigned char)from[-1]) && !strchr(around, from[-1]))) &&
		    !isalnum((unsigned char)*at) && (!*at || !strchr("_:/\\%", *at)) &&
		    !(*at == '.' && isdigit((unsigned char)at[1])) && digits <= 10 && n > e->number)
			e->number = n;
		if (!*at)
			break;
	}
	if (says(s, SAID_over_int))
		e->largest = e->largest < 2147483648.0 ? 2147483648.0 : e->largest;
}

/* "kernel<<<grid, 2048>>>", "block=(32,64,1)": threads per block. */
static void read_launch(struct text_env *e, const char *s)
{
	const char *at = strstr(s, "<<<"), *end = at ? strstr(at, ">>>") : NULL;
	double threads = 0;
	int x = 0, y = 1, z = 1;

	if (end && (at = memchr(at, ',', (size_t)(end - at))) != NULL)
		threads = strtod(at + 1 + strspn(at + 1, " "), NULL);
	else if ((at = strstr(s, "block=(")) != NULL && sscanf(at, "block=(%d,%d,%d", &x, &y, &z) >= 1)
		threads = (double)x * y * z;
	if (threads > e->block && threads < 1e9)
		e->block = threads;
}

/* A size such as "7012 MiB", "31.2 GB", "14980MiB", "14.2G"; -1 when none begins here. */
static double size_at(const char *s, const char **end)
{
	char *unit;
	double v = strtod(s, &unit), scale;

	while (*unit == ' ')
		unit++;
	if (unit == s || (*unit != 'M' && *unit != 'G' && *unit != 'K'))
		return -1;
	scale = *unit == 'M' ? 1048576.0 : *unit == 'G' ? 1073741824.0 : 1024.0;
	unit += unit[1] == 'i' ? 2 : 1;
	if (*unit == 'B' || *unit == 'b')
		unit++;
	if (isalnum((unsigned char)*unit))
		return -1;
	*end = unit;
	return v * scale;
}

/* A figure of memory on a line of this shape: does it rise from line to line? */
static void follow_memory(struct text_env *e, uint32_t shape, double size, uint64_t number)
{
	struct text_track *t = NULL;

	for (size_t i = 0; i < e->n_tracks; i++)
		if (e->track[i].shape == shape)
			t = &e->track[i];
	if (!t && e->n_tracks < ENV_TRACKS)
		e->track[e->n_tracks++] =
			(struct text_track){.shape = shape, .first = size, .last = size, .line = number};
	if (!t)
		return;
	t->rises += size > t->last;
	t->falls += size < t->last;
	e->rises += size > t->last && t->rises > 1 && !t->falls;
	t->last = size;
}

/* "|   3  NVIDIA A100-SXM4-80GB          On  |   00000000:1F:00.0 Off |", and of nvidia-smi -q "Attached GPUs   : 4" */
static void read_smi_count(struct text_env *e, const char *s)
{
	int index, count;

	if (sscanf(s, "| %d %*[A-Za-z]", &index) == 1 && index >= 0 && index < 64 && strstr(s, ":00.0 ") &&
	    index + 1 > e->gpus)
		e->gpus = index + 1;
	if (sscanf(s, "Attached GPUs : %d", &count) == 1 && count > 0)
		e->gpus = count;
}

static void read_smi(struct text_env *e, const char *s, uint64_t number)
{
	const char *slash = strstr(s, "MiB / "), *from, *end, *gpu;
	size_t bar = s[0] == '|' ? 1 + strspn(s + 1, " ") : 0;
	double used, total;
	int index;
	unsigned pid;

	if (bar && isdigit((unsigned char)s[bar]) && isalpha((unsigned char)s[bar + strspn(s + bar, "0123456789 ")]))
		e->smi_gpu = (int)strtol(s + bar, NULL, 10);	/* the row above the one with its memory */
	read_smi_count(e, s);
	if (slash) {
		from = slash;
		while (from > s && (isdigit((unsigned char)from[-1]) || from[-1] == '.'))
			from--;
		used = size_at(from, &end);
		total = size_at(slash + 6, &end);
		if (used >= 0 && e->smi_gpu == 0)	/* several tables, one after another */
			follow_memory(e, SHAPE_SMI, used, number);
		if (used >= 0 && total > 0 && used > e->memory_used) {
			e->memory_used = used;
			e->memory_total = total;
		}
	}
	gpu = strstr(s, "GPU ");
	if (e->n_pids == ENV_PIDS || !strstr(s, "MiB") || slash)
		return;
	if ((gpu && sscanf(gpu, "GPU %d PID %u", &index, &pid) == 2) || sscanf(s, "| %d N/A N/A %u", &index, &pid) == 2 ||
	    sscanf(s, "| %d %u C", &index, &pid) == 2 || sscanf(s, "| %d %u G", &index, &pid) == 2)
		e->pid[e->n_pids++] = (struct text_pid){.pid = pid, .gpu = index};
}

/* "8 GB card", "Nvidia gpu with 8gb", "RTX 3090 (24 GB)", "VRAM: 8GB"; not the RAM of the machine. */
static void read_card(struct text_env *e, const char *s)
{
	if (e->gpu_memory > 0 || strlen(s) > 120 || !says(s, SAID_of_a_card) || says(s, SAID_no_card))
		return;
	for (const char *at = s; *at; at++) {
		char *unit;
		double n;

		if (!isdigit((unsigned char)*at) || (at > s && (isalnum((unsigned char)at[-1]) || at[-1] == '.')))
			continue;
		n = strtod(at, &unit);
		unit += *unit == ' ';
		if ((strncasecmp(unit, "gb", 2) && strncasecmp(unit, "gib", 3)) || n < 1 || n > 1000)
			continue;
		unit += 2 + (unit[1] == 'i' || unit[1] == 'I');
		if (isalnum((unsigned char)*unit) || strncasecmp(unit, " ram", 4) == 0)
			continue;
		e->gpu_memory = n * 1073741824.0;
		return;
	}
}

/* TensorFlow 1 describes each GPU when it starts: "totalMemory: 7.92GiB freeMemory: 190.31MiB", or on a line each "Total memory: …",
 * "Free memory: …". Since 2 it only says what it may use: "Created device /job:localhost/…/device:GPU:0 with 190 MB memory". */
static void read_start(struct text_env *e, const char *s)
{
	const char *at, *end, *created;
	double left = -1;

	if (says_at(s, SAID_total_memory, &at))
		e->start_seen = size_at(at, &end);
	if (e->start_seen > 0 && says_at(s, SAID_free_memory, &at))
		left = size_at(at, &end);
	at = says_at(s, SAID_device_memory, &created);
	if (at)
		left = size_at(created, &end);
	if (left <= 0 || (e->start_free > 0 && left >= e->start_free))
		return;
	e->start_free = left;
	e->start_total = at ? e->start_total : e->start_seen;
}

static void read_growth(struct text_env *e, const char *s, uint64_t number)
{
	const char *at, *end;
	double size = -1;

	if ((!says_at(s, SAID_memory_figure, &at) && !says_at(s, SAID_allocation_figure, &at)) || says(s, SAID_request))
		return;
	for (; *at && size < 0; at++)
		if (isdigit((unsigned char)*at) && !isalnum((unsigned char)at[-1]) && at[-1] != '.')
			size = size_at(at, &end);
	if (size < 0)
		return;
	follow_memory(e, hash_letters(s, at), size, number);
}

/* Which fact says what a line changed. Of several rows of a fact, the first with a place counts. */
static const struct {
	enum fact_id fact;
	size_t at, size;
} places[] = {
#define PLACE(fact, field) {FACT_##fact, offsetof(struct text_env, field), sizeof(((struct text_env *)NULL)->field)}
	PLACE(text_driver, driver),
	PLACE(text_driver_major, driver),
	PLACE(text_driver_cuda, driver_cuda),
	PLACE(text_driver_cuda, driver),
	PLACE(text_torch, torch),
	PLACE(text_torch_cuda, torch_cuda),
	PLACE(text_torch_cuda, torch),
	PLACE(text_torch_gpu, torch_cuda),
	PLACE(text_torch_cpu, torch),
	PLACE(text_gpu, gpu),
	PLACE(text_gpu_cc, capability),
	PLACE(text_gpu_cc, gpu),
	PLACE(text_gpus, gpus),
	PLACE(text_archs, arch_list),
	PLACE(text_gpu_memory, gpu_memory),
	PLACE(text_visible, visible),
	PLACE(text_visible_entries, visible),
	PLACE(text_nproc, nproc),
	PLACE(text_smi_used, memory_used),
	PLACE(text_smi_shared, n_pids),
	PLACE(text_smi_first, n_pids),
	PLACE(text_growth, rises),
	PLACE(text_start_free, start_free),
	PLACE(text_device, device_max),
	PLACE(text_elements, elements),
	PLACE(text_largest, largest),
	PLACE(text_migs, migs),
	PLACE(text_block, block),
	PLACE(text_number, number),
	PLACE(text_ranks_differ, ops_differ),
	PLACE(text_visible_late, visible_line),
#undef PLACE
};

_Static_assert(sizeof(places) / sizeof(places[0]) <= ENV_PLACES, "env.h has room for all of them");

/* The first bytes of a value: enough to see that it changed. */
static uint64_t value_begin(const struct text_env *e, size_t i)
{
	uint64_t begin = 0;

	memcpy(&begin, (const char *)e + places[i].at, places[i].size < sizeof(begin) ? places[i].size : sizeof(begin));
	return begin;
}

static void note_places(struct text_env *e, const char *s, const char *file, uint64_t line)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		uint64_t now = value_begin(e, i);
		struct text_place *p = &e->place[i];

		if (now == p->was)
			continue;
		*p = (struct text_place){.file = file, .line = line, .was = now};
		str_copy(p->text, sizeof(p->text), s);
	}
}

const struct text_place *env_place(const struct text_env *e, size_t n, enum fact_id *fact)
{
	if (n >= sizeof(places) / sizeof(places[0]))
		return NULL;
	*fact = places[n].fact;
	return &e->place[n];
}

/* "252G", "1.2G", "65536" (blocks of 1 KiB): bytes. */
static double df_bytes(const char *s)
{
	static const char units[] = "KMGT";
	char *end;
	double value = strtod(s, &end);
	const char *unit = *end && *end != ' ' ? strchr(units, *end) : NULL;

	for (const char *u = units; unit && u <= unit; u++)
		value *= 1024;
	return unit || *end != ' ' ? value : value * 1024;
}

/* A row of df: "tmpfs  252G  1.2G  251G  1% /dev/shm". */
static void read_shm(struct text_env *e, const char *s)
{
	char size[16], used[16], left[16];

	if (!str_ends(s, "% /dev/shm") || sscanf(s, "%*63s %15s %15s %15s", size, used, left) != 3)
		return;
	e->shm_size = df_bytes(size);
	e->shm_free = df_bytes(left);
}

void env_init(struct text_env *e)
{
	*e = (struct text_env){.gpus = -1, .memory_used = -1, .memory_total = -1, .device_max = -1};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		e->place[i].was = value_begin(e, i);
}

void env_line(struct text_env *e, const char *s, uint64_t number, const char *file, uint64_t line)
{
	if (!*s)
		return;
	snippets_line(&e->snippets, s, line);
	settings_line(&e->settings, s, file, line);
	said_facts_line(&e->said, s, file, line);
	if (docker_prompt(s))
		said_facts_add(&e->said, SAYS_text_container, s, file, line);
	read_driver(e, s);
	read_cuda(e, s);
	read_torch(e, s);
	read_gpu_name(e, s);
	read_launcher(e, s);
	read_visible(e, s);
	read_devices(e, s, number);
	read_name(e, s);
	read_launch(e, s);
	read_tensors(e, s);
	if (e->empty_here)
		said_facts_add(&e->said, SAYS_text_empty, s, file, line);
	read_collectives(e, s);
	read_large_numbers(e, s);
	read_smi(e, s, number);
	compute_modes_line(&e->modes, s);
	read_card(e, s);
	read_start(e, s);
	read_growth(e, s, number);
	read_shm(e, s);
	note_places(e, s, file, line);
}

const struct text_track *env_growth(const struct text_env *e)
{
	for (size_t i = 0; i < e->n_tracks; i++) {
		const struct text_track *t = &e->track[i];

		if (t->rises >= 2 && !t->falls && t->last > t->first * 1.1)
			return t;
	}
	return NULL;
}

size_t env_shared_pids(const struct text_env *e)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n_pids; i++)
		for (size_t k = 0; e->pid[i].gpu == 0 && k < e->n_pids; k++)
			if (e->pid[k].pid == e->pid[i].pid && e->pid[k].gpu != 0) {
				n++;
				break;
			}
	return n;
}

size_t env_first_pids(const struct text_env *e)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n_pids; i++)
		n += e->pid[i].gpu == 0;
	return n;
}
