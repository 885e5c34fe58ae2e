/* SPDX-License-Identifier: Apache-2.0
 * The machine as a text mentions it (see env.h).
 */
#include "input/text/env.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "input/text/env_priv.h"
#include "base/banned.h"

void env_init(struct text_env *e)
{
	*e = (struct text_env){.gpus = -1, .memory_used = -1, .memory_total = -1, .device_max = -1};
}

const char *env_after(const char *s, const char *what)
{
	const char *at = strcasestr(s, what);

	return at ? at + strlen(what) : NULL;
}

/* The version that begins here, or behind a few characters: "v470.57", " : 12.1". */
static size_t take_version(const char *s, char *to, size_t size)
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

/* "12.4" -> 12040. 0 when it is none. */
static int cuda_number(const char *s)
{
	char version[16], *end;
	long major, minor = 0;

	if (!take_version(s, version, sizeof(version)))
		return 0;
	major = strtol(version, &end, 10);
	if (*end == '.')
		minor = strtol(end + 1, NULL, 10);
	return major >= 5 && major < 40 && minor < 30 ? (int)(major * 1000 + minor * 10) : 0;
}

/* ---- versions --------------------------------------------------------------------------------------- */

static void read_driver(struct text_env *e, const char *s)
{
	static const char *const before[] = {"driver version", "NVIDIA-SMI", "Kernel Module", "nvidia driver", "NVRM version", "driver"};
	char version[32];

	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]) && !e->driver[0]; i++) {
		const char *at = env_after(s, before[i]);

		if (at && take_version(at, version, sizeof(version)) >= 3 && strtol(version, NULL, 10) >= 300 &&
		    strtol(version, NULL, 10) < 2000)
			str_copy(e->driver, sizeof(e->driver), version);
	}
}

static void read_cuda(struct text_env *e, const char *s)
{
	const char *at;

	if ((at = env_after(s, "found version ")) != NULL && isdigit((unsigned char)*at))
		e->driver_cuda = (int)strtol(at, NULL, 10);
	if ((at = env_after(s, "CUDA Version:")) != NULL && (strcasestr(s, "driver") || strstr(s, "NVIDIA-SMI")) && cuda_number(at))
		e->driver_cuda = cuda_number(at);
	if (((at = env_after(s, "CUDA used to build PyTorch")) != NULL || (at = env_after(s, "torch.version.cuda")) != NULL ||
	     (at = env_after(s, "torch built with CUDA")) != NULL || (at = env_after(s, "built with CUDA")) != NULL) && cuda_number(at))
		e->torch_cuda = cuda_number(at);
	if (env_after(s, "CUDA used to build PyTorch: None") || env_after(s, "CUDA used to build PyTorch: Could not"))
		e->torch_cpu = true;
	if ((at = env_after(s, "release ")) != NULL && strcasestr(s, "Cuda compilation tools"))
		take_version(at, e->nvcc, sizeof(e->nvcc));
	if ((at = env_after(s, "nvcc ")) != NULL && cuda_number(at) && !e->nvcc[0])
		take_version(at, e->nvcc, sizeof(e->nvcc));
	for (at = s; !e->cuda && (at = strstr(at, "CUDA")) != NULL; at += 4)
		if ((at[4] == ' ' || at[4] == '=' || at[4] == '-') && isdigit((unsigned char)at[5]))
			e->cuda = cuda_number(at + 5);
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
	e->torch_cpu |= strstr(e->torch, "+cpu") != NULL;
}

static void read_torch(struct text_env *e, const char *s)
{
	static const char *const before[] = {"PyTorch version", "torch==", "torch.__version__", "pytorch=", "pytorch:", "PyTorch ", "torch ", "torch-"};

	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]) && !e->torch[0]; i++) {
		const char *at = env_after(s, before[i]);

		if (at && (at - s == (long)strlen(before[i]) || !isalpha((unsigned char)at[-(long)strlen(before[i]) - 1])))
			set_torch(e, at);
	}
	if (!e->torch[0] && (e->asked_version || ((s[0] == '\'' || s[0] == '"') && strstr(s, "+c"))))	/* the answer to torch.__version__ */
		set_torch(e, s);
	e->asked_version = strstr(s, "torch.__version__") != NULL;
	if (!e->torch_cuda && (s = strstr(s, "torch cu")) != NULL) {
		long all = strtol(s + 8, NULL, 10);

		if (all >= 90 && all < 400)
			e->torch_cuda = (int)(all / 10 * 1000 + all % 10 * 10);
	}
}

/* "cpuonly  2.0", "pytorch  1.11.0  py3.8_cpu_0  pytorch", "pytorch-mutex  1.0  cpu": a list of conda's packages. */
static void read_conda(struct text_env *e, const char *s)
{
	e->torch_cpu |= str_starts(s, "cpuonly ") || str_starts(s, "pytorch-cpu ") ||
			((str_starts(s, "pytorch ") || str_starts(s, "libtorch ")) && (strstr(s, "_cpu_") || strstr(s, " cpu_"))) ||
			(str_starts(s, "pytorch-mutex ") && strstr(s, " cpu"));
}

/* ---- who runs where --------------------------------------------------------------------------------- */

/* "root@3f2a90b1c44d:/work# ": a container's name is the beginning of its id. */
static bool docker_prompt(const char *s)
{
	const char *at = strchr(s, '@');

	return at && strspn(at + 1, "0123456789abcdef") == 12 && (at[13] == ':' || at[13] == ' ');
}

static void read_surroundings(struct text_env *e, const char *s)
{
	e->wsl |= strstr(s, "WSL") || strstr(s, "microsoft-standard");
	e->windows |= strstr(s, "Windows") || strstr(s, "WinError") || strstr(s, ".dll") || (strstr(s, ":\\") && strstr(s, "\\"));
	e->container |= strcasestr(s, "docker") || strcasestr(s, "podman") || strcasestr(s, "kubernetes") || strcasestr(s, "k8s") || strcasestr(s, "kubectl") ||
			strcasestr(s, "singularity") || strcasestr(s, "apptainer") || strcasestr(s, "container") ||
			strcasestr(s, "lxc") || strcasestr(s, "lxd") || strstr(s, "enroot") || docker_prompt(s);
	e->slurm |= strcasestr(s, "slurm") || strstr(s, "srun");
	e->hangs |= strcasestr(s, " hang") || strcasestr(s, "hangs") || strcasestr(s, "hung ") || strcasestr(s, "stuck") ||
		    strcasestr(s, "no progress") || strcasestr(s, "freezes") || strcasestr(s, "deadlock") || strcasestr(s, "nothing happens") ||
		    strcasestr(s, "no output,") || strcasestr(s, "never finishes") || strcasestr(s, "does not go on") || strcasestr(s, "waits forever");
	e->jetson |= strstr(s, "Jetson") || strstr(s, "tegra");
}

static void read_launcher(struct text_env *e, const char *s)
{
	static const char *const before[] = {"nproc_per_node", "nproc-per-node", "world_size=", "WORLD_SIZE=", "world_size ", "tp_size=",
					     "tensor-parallel-size", "tensor_parallel_size", "num_processes", "num-gpus", "num_gpus"};
	const char *at;

	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]) && !e->nproc; i++) {
		at = env_after(s, before[i]);
		if (at && isdigit((unsigned char)at[strspn(at, "=: ")]) && strtol(at + strspn(at, "=: "), NULL, 10) < 100000)
			e->nproc = (int)strtol(at + strspn(at, "=: "), NULL, 10);
	}
	at = strstr(s, "CUDA_VISIBLE_DEVICES");
	if (!at)
		return;
	at += strlen("CUDA_VISIBLE_DEVICES");
	at += strspn(at, "\"'] :");
	if (*at == '=' || *at == ',') {
		at += strspn(at, " =,\"'");
		e->visible_set = true;
		str_copy(e->visible, strcspn(at, " \"';)") + 1 < sizeof(e->visible) ? strcspn(at, " \"';)") + 1 : sizeof(e->visible), at);
	} else if (str_starts(at, "to ") && (isdigit((unsigned char)at[3]) || at[3] == '"' || at[3] == '\'' || at[3] == '-')) {
		at += 3 + strspn(at + 3, "\"'");
		e->visible_set = true;
		str_copy(e->visible, strcspn(at, " \"';)") + 1 < sizeof(e->visible) ? strcspn(at, " \"';)") + 1 : sizeof(e->visible), at);
	}
}

/* "torch.cuda.is_available(): False", or the answer on the next line. */
static void read_available(struct text_env *e, const char *s)
{
	if (e->asked && !strcmp(s, "False"))
		e->unavailable = true;
	e->asked = strstr(s, "is_available()") != NULL;
	if ((e->asked || strcasestr(s, "cuda available") || strcasestr(s, "is cuda available")) && strstr(s, "False"))
		e->unavailable = true;
}

/* Lines of code that start CUDA. In a traceback such lines stand behind the ones that a script begins with. */
static bool uses_cuda(const struct text_env *e, const char *s)
{
	if (strstr(s, "torch.cuda.") && !strstr(s, "OutOfMemoryError"))
		return true;
	return e->script && (strstr(s, ".cuda()") || strstr(s, ".to('cuda") || strstr(s, ".to(\"cuda") || strstr(s, "device='cuda") ||
			     strstr(s, "device=\"cuda"));
}

static void read_devices(struct text_env *e, const char *s, uint64_t number)
{
	for (const char *at = s; (at = strstr(at, "cuda:")) != NULL; at += 5)
		if (isdigit((unsigned char)at[5]) && (int)strtol(at + 5, NULL, 10) > e->device_max && strtol(at + 5, NULL, 10) < 64)
			e->device_max = (int)strtol(at + 5, NULL, 10);
	e->mig |= strstr(s, "MIG-") || strstr(s, "MIG mode") || strstr(s, "MIG slice") || strstr(s, "MIG instance") || strstr(s, " MIG") ||
		  strstr(s, "MIG 1g") || strstr(s, "MIG devices");
	if (strstr(s, "MIG M.") || strstr(s, "N/A"))
		e->mig = e->mig && !strstr(s, "MIG M.");
	for (const char *at = s; (at = strstr(at, "MIG ")) != NULL; at++)
		e->migs += isdigit((unsigned char)at[4]) && strstr(at, " Device ");
	e->script |= str_starts(s, "import torch") || str_starts(s, "from torch");
	if (!e->cuda_used_line && !str_starts(s, "File ") && !strstr(s, "Error:") && uses_cuda(e, s))
		e->cuda_used_line = number;
	if (!e->visible_line && (strstr(s, "environ[") || strstr(s, "environ.setdefault(")) && strstr(s, "CUDA_VISIBLE_DEVICES"))
		e->visible_line = number;
}

void env_line(struct text_env *e, const char *s, uint64_t number)
{
	if (!*s)
		return;
	read_driver(e, s);
	read_cuda(e, s);
	read_torch(e, s);
	read_conda(e, s);
	env_gpu(e, s);
	read_surroundings(e, s);
	read_launcher(e, s);
	read_available(e, s);
	read_devices(e, s, number);
	env_tensors(e, s);
	env_memory(e, s, number);
}
