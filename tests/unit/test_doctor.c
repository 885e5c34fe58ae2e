/* SPDX-License-Identifier: Apache-2.0
 * The doctor: machines as bundles, each a healthy one with a few things changed, and the cause that must be found;
 * bundles written and read back; hostile bundles; what is removed from them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/err.h"
#include "case/case.h"
#include "read/machine/machine.h"
#include "verdict/doctor.h"
#include "verdict/verdict.h"
#include "show/report.h"
#include "knowledge/kb.h"
#include "verdict/rules/rules.h"

/* An RTX 4090, driver 580, PyTorch 2.11 for CUDA 12.8: everything matches. */
static const char healthy[] =
	"{'cuwhy_bundle': 1,"
	" 'host': {'os': {'arch': 'x86_64', 'secure_boot': false},"
	"  'kernel': {'version': '580.65.06', 'flavour': 'open', 'nvidia': true, 'uvm': true, 'nouveau': false, 'installed': true,"
	"   'other_kernel': false, 'suspends': 0},"
	"  'container': {'kind': 'none'}, 'wsl': {'version': 0}, 'fabric': {'switches': 0}, 'mps': {'pipe': false, 'asked': false},"
	"  'memory': {'shm_size': 8589934592, 'shm_free': 8589934592, 'shm_writable': true, 'lock_soft': 8388608},"
	"  'log': {'readable': true},"
	"  'gpu': [{'address': '0000:01:00.0', 'device': 9860, 'driver': 'nvidia', 'answers': true}],"
	"  'node': [{'path': '/dev/nvidiactl', 'exists': true, 'error': 0, 'mode': 438},"
	"   {'path': '/dev/nvidia-uvm', 'exists': true, 'error': 0, 'mode': 438}, {'path': '/dev/nvidia0', 'exists': true, 'error': 0}]},"
	" 'variables': {},"
	" 'nvml': {'driver': '580.65.06', 'cuda': 13000, 'gpus': [{'name': 'NVIDIA GeForce RTX 4090', 'uuid': 'GPU-1', 'cc_major': 8,"
	"  'cc_minor': 9, 'compute_mode': 0, 'mig': 0, 'holders_known': true}]},"
	" 'cuda': {'init': 0, 'version': 13000, 'devices': [{'name': 'NVIDIA GeForce RTX 4090', 'uuid': 'GPU-1', 'cc_major': 8, 'cc_minor': 9}]},"
	" 'python': {'environments': [{'kind': 'venv', 'prefix': '/v', 'major': 3, 'minor': 12,"
	"  'torch': {'version': '2.11.0+cu128', 'build': 'cuda', 'cuda': '12.8', 'cxx11_abi': 1},"
	"  'packages': [{'name': 'torch', 'version': '2.11.0'}], 'loader': {'known': true}}],"
	"  'libcuda': {'path': '/usr/lib/libcuda.so.1', 'version': '580.65.06', 'why': 'ld.so.cache'}},"
	" 'code': [{'env': 0, 'torch': true, 'archs': 'sm_75 sm_80 sm_86 sm_90 sm_100 sm_120'}]}";

/* Single quotes are easier to read in C. */
static json_t *parse(const char *text)
{
	char *copy = strdup(text);
	json_error_t e;
	json_t *o;

	for (char *c = copy; *c; c++)
		if (*c == '\'')
			*c = '"';
	o = json_loads(copy, 0, &e);
	if (!o)
		fail_msg("%s: column %d of %s", e.text, e.column, copy);
	free(copy);
	return o;
}

/* Members of `change` replace those of `base`, objects are joined. */
static void join(json_t *base, json_t *change)
{
	const char *key;
	json_t *v;

	json_object_foreach(change, key, v) {
		json_t *old = json_object_get(base, key);

		if (json_is_object(old) && json_is_object(v))
			join(old, v);
		else
			json_object_set(base, key, v);
	}
}

struct judged {
	struct machine m;
	struct doctor *d;
};

static void judge(struct judged *j, const char *change)
{
	json_t *o = parse(healthy);
	char *quoted = strdup(change);
	size_t len = strlen(change), at = 0;
	json_error_t where;
	struct err e = {0};

	for (char *c = quoted; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	while (at < len) {	/* several objects, one after the other */
		json_t *c = json_loadb(quoted + at, len - at, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &where);

		if (!c)
			fail_msg("%s: column %d of %s", where.text, where.column, quoted + at);
		join(o, c);
		json_decref(c);
		at += (size_t)where.position + strspn(quoted + at + where.position, " ");
	}
	free(quoted);
	if (machine_from_json(&j->m, o, &e))
		fail_msg("%s", e.msg);
	j->d = doctor_judge(&j->m);
	json_decref(o);
}

static void end(struct judged *j)
{
	doctor_free(j->d);
	machine_release(&j->m);
}

static const struct doctor_check *find(const struct judged *j, const char *id)
{
	for (size_t i = 0; i < j->d->n_checks; i++)
		if (strcmp(j->d->check[i].id, id) == 0)
			return &j->d->check[i];
	return NULL;
}

#define ENV(torch, more) \
	"'python': {'environments': [{'kind': 'venv', 'prefix': '/v', 'major': 3, 'minor': 12, 'torch': {" torch \
	"}" more "}]}"
#define TORCH "'version': '2.11.0+cu128', 'build': 'cuda', 'cuda': '12.8', 'cxx11_abi': 1"
#define GPU(name, major, minor, more) \
	"'nvml': {'gpus': [{'name': '" name "', 'uuid': 'GPU-1', 'cc_major': " #major ", 'cc_minor': " #minor more \
	"}]}," \
	"'cuda': {'devices': [{'name': '" name "', 'uuid': 'GPU-1', 'cc_major': " #major ", 'cc_minor': " #minor "}]}"
#define CONTAINER "'container': {'kind': 'docker'}"
#define NO_DRIVER "'nvml': {'trouble': 'no-library', 'driver': '', 'cuda': null, 'gpus': []}," \
	"'cuda': {'trouble': 'no-library', 'init': null, 'version': null, 'devices': []}, 'python': {'libcuda': {'path': null}}"
#define NO_NODES "'node': [{'path': '/dev/nvidiactl', 'exists': false}, {'path': '/dev/nvidia-uvm', 'exists': false}]"
#define NO_MODULE "'kernel': {'version': null, 'nvidia': false, 'uvm': false, 'installed': false}"
#define NOT_STARTED(code) "'cuda': {'init': " #code ", 'devices': [], 'count': null}"

static const struct { const char *name, *change, *cause, *certainty; } sick[] = {
	{"a machine without anything", "{'host': {'gpu': [], " NO_NODES ", " NO_MODULE "}, " NO_DRIVER "}", "no-gpu",
	 "certain"},
	{"a GPU that fell off the bus", "{'host': {'gpu': [{'address': '0000:01:00.0', 'answers': false}]}}",
	 "gpu-lost", "certain"},
	{"two on the bus, one starts",
	 "{'host': {'event': [{'id': 'init-failed', 'count': 1, 'text': 'NVRM: RmInitAdapter failed!'}],"
	 " 'gpu': [{'address': '0000:01:00.0', 'driver': 'nvidia', 'answers': true},"
	 " {'address': '0000:02:00.0', 'driver': 'nvidia', 'answers': true}]}}", "gpu-lost", "likely"},
	{"no driver at all", "{'host': {" NO_NODES ", " NO_MODULE "}, " NO_DRIVER "}", "driver-not-installed", "certain"},
	{"module built for another kernel",
	 "{'host': {" NO_NODES ", 'kernel': {'version': null, 'nvidia': false, 'uvm': false,"
	 " 'installed': false, 'other_kernel': true}}, 'nvml': {'trouble': 'refused', 'code': 9, 'gpus': []}, " NOT_STARTED(100) "}",
	 "driver-not-loaded", "certain"},
	{"a card newer than the driver", "{'nvml': {'driver': '535.54.03', 'cuda': 12020, 'gpus': []},"
	 " 'cuda': {'init': 100, 'version': 12020, 'devices': [], 'count': null}, 'python': {'libcuda': {'version': '535.54.03'}},"
	 " 'host': {'kernel': {'version': '535.54.03'}, 'gpu': [{'address': '0000:01:00.0', 'device': 11141, 'driver': 'nvidia', 'answers': true}]}}",
	 "driver-gpu-unsupported", "certain"},
	{"nodes that the user may not open",
	 "{'host': {'node': [{'path': '/dev/nvidiactl', 'exists': true, 'error': 13, 'mode': 432}]}, " NOT_STARTED(100) "}",
	 "device-permission", "certain"},
	{"container without GPUs", "{'host': {" CONTAINER ", " NO_NODES "}, " NO_DRIVER "}", "container-without-gpu",
	 "certain"},
	{"container that lost them",
	 "{'host': {" CONTAINER ", 'node': [{'path': '/dev/nvidiactl', 'exists': true, 'error': 1}]},"
	 " 'nvml': {'trouble': 'refused', 'code': 999, 'gpus': []}, " NOT_STARTED(100) "}",
	 "container-lost-gpu", "certain"},
	{"container without the UVM node",
	 "{'host': {" CONTAINER ", 'node': [{'path': '/dev/nvidiactl', 'exists': true, 'error': 0},"
	 " {'path': '/dev/nvidia-uvm', 'exists': false}]}, " NOT_STARTED(999) "}",
	 "container-missing-uvm-node", "certain"},
	{"an empty libcuda", "{'python': {'libcuda': {'broken': 'empty file'}}, 'cuda': {'trouble': 'no-library', 'init': null, 'devices': []}}",
	 "driver-library-broken", "certain"},
	{"upgrade without restart",
	 "{'python': {'libcuda': {'version': '590.44.01'}}, 'nvml': {'trouble': 'refused', 'code': 18, 'gpus': []}, " NOT_STARTED(
		 803) "}",
	 "driver-library-mismatch", "certain"},
	{"cuda-compat on a GeForce",
	 "{'python': {'libcuda': {'compat': true, 'version': '590.44.01'}}, " NOT_STARTED(804) "}",
	 "forward-compat-unsupported", "certain"},
	{"NVSwitches without Fabric Manager",
	 "{'host': {'fabric': {'switches': 4, 'installed': true, 'running': false}}, " NOT_STARTED(802) "}",
	 "fabric-manager-not-ready", "certain"},
	{"after suspend", "{'host': {'kernel': {'suspends': 2}}, " NOT_STARTED(999) "}", "uvm-broken-after-suspend",
	 "likely"},
	{"dead MPS daemon",
	 "{'host': {'mps': {'pipe': true, 'daemon': false, 'pipe_dir': '/tmp/nvidia-mps'}}, " NOT_STARTED(805) "}",
	 "mps-unreachable", "certain"},
	{"a driver that hangs",
	 "{'cuda': {'init': null, 'trouble': 'hung', 'why': 'no answer within 10 seconds', 'devices': []}}",
	 "driver-fails", "certain"},
	{"prohibited mode", "{'nvml': {'gpus': [{'name': 'NVIDIA A30', 'uuid': 'GPU-1', 'cc_major': 8, 'cc_minor': 0, 'compute_mode': 2}]}}",
	 "compute-mode-exclusive", "certain"},
	{"exclusive and taken", "{" GPU("NVIDIA A30", 8, 0, ", 'compute_mode': 3, 'holders_known': true, 'processes': [{'pid': 7, 'kind': 1}]") "}",
	 "compute-mode-exclusive", "likely"},
	{"MIG without instances", "{" GPU("NVIDIA A30", 8, 0, ", 'mig': 1, 'mig_devices': 0") "}", "mig-misuse",
	 "certain"},
	{"worn memory", "{" GPU("NVIDIA A30", 8, 0, ", 'remap_failed': 1") "}", "ecc-hardware-fault", "certain"},
	{"a hidden GPU", "{'variables': {'CUDA_VISIBLE_DEVICES': '3'}, " NOT_STARTED(100) "}", "visible-devices-wrong",
	 "certain"},
	{"a bad allocator setting", "{'variables': {'PYTORCH_ALLOC_CONF': 'expandable_segments'}}",
	 "environment-variable", "likely"},
	{"small shared memory", "{'host': {'memory': {'shm_size': 67108864, 'shm_free': 67108864}}}",
	 "shm-too-small-dataloader", "possible"},
	{"no shared memory for several GPUs",
	 "{'host': {'memory': {'shm_size': 536870912, 'shm_free': 1048576}}, 'nvml': {'gpus': ["
	 "{'name': 'NVIDIA A30', 'cc_major': 8, 'cc_minor': 0}, {'name': 'NVIDIA A30', 'cc_major': 8, 'cc_minor': 0}]},"
	 " 'cuda': {'devices': [{'cc_major': 8, 'cc_minor': 0}, {'cc_major': 8, 'cc_minor': 0}]}}",
	 "shm-too-small-nccl", "possible"},
	{"shared memory of somebody else", "{'host': {'memory': {'shm_writable': false}}}", "shm-permission-nccl",
	 "likely"},
	{"nothing may be locked", "{'host': {'memory': {'lock_soft': 4096}}}", "oom-pinned-host", "possible"},
	{"a CPU build", "{" ENV("'version': '2.11.0+cpu', 'build': 'cpu'", "") ", 'code': []}", "cpu-only-build",
	 "certain"},
	{"a folder named torch", "{" ENV(TORCH ", 'shadow': '/w/torch'", "") "}", "torch-shadowed", "certain"},
	{"a folder named torch, and no PyTorch", "{" ENV("'shadow': '/w/torch'", "") ", 'code': []}", "torch-shadowed",
	 "likely"},
	{"a driver too old",
	 "{'host': {'kernel': {'version': '470.57.02'}}, 'nvml': {'driver': '470.57.02', 'cuda': 11040},"
	 " 'cuda': {'version': 11040}} {'python': {'libcuda': {'version': '470.57.02'}}}", "driver-too-old", "certain"},
	{"a GPU newer than the build",
	 "{" GPU("NVIDIA GeForce RTX 5090", 12, 0,
		 "") ", 'code': [{'env': 0, 'torch': true, 'archs': 'sm_80 sm_86 sm_90'}]}",
	 "arch-not-in-wheel", "certain"},
	{"a GPU that was dropped", "{" GPU("Tesla V100-SXM2-16GB", 7, 0, "") "}", "gpu-too-old", "certain"},
	{"PTX of a newer toolkit",
	 "{" GPU("NVIDIA GeForce RTX 5090", 12, 0,
		 "") "} {'nvml': {'driver': '575.57.08', 'cuda': 12090}, 'cuda': {'version': 12090},"
		     " 'host': {'kernel': {'version': '575.57.08'}}, 'python': {'libcuda': {'version': '575.57.08'}},"
		     " 'code': [{'env': 0, 'torch': true, 'archs': 'sm_80 sm_90 compute_90@9.0'}]}",
	 "ptx-newer-than-driver", "certain"},
	{"an extension for other GPUs", "{'code': [{'env': 0, 'torch': true, 'archs': 'sm_80 sm_86'}, {'env': 0, 'package': 'flash-attn', 'path': '/v/f.so',"
	 " 'archs': 'sm_90'}]}", "extension-arch-missing", "likely"},
	{"an extension for another PyTorch",
	 "{" ENV(TORCH, ", 'extensions': [{'path': '/v/x.so', 'package': 'x', 'torch': true, 'n_unresolved': 3,"
			" 'unresolved': '_ZN3c105ErrorC2E'}]") "}",
	 "extension-abi-mismatch", "likely"},
	{"old torchvision",
	 "{" ENV(TORCH, ", 'packages': [{'name': 'torchvision', 'version': '0.20.1', 'watched': true}]") "}",
	 "torchvision-mismatch", "likely"},
	{"a requirement that is not met",
	 "{" ENV(TORCH, ", 'clashes': [{'package': 'torch', 'version': '2.11.0', 'requirement': 'nvidia-cudnn-cu12==9.10.2.21',"
			" 'name': 'nvidia-cudnn-cu12', 'installed': '9.1.0.70'}]") "}",
	 "package-conflict", "likely"},
	{"a library that is nowhere",
	 "{" ENV(TORCH, ", 'loader': {'files': [{'soname': 'libcudnn.so.9', 'needed_by': '/v/libtorch_cuda.so'}]}") "}",
	 "wheel-packaging-defect", "certain"},
	{"a library in front of the wheel's",
	 "{" ENV(TORCH,
		 ", 'loader': {'files': [{'soname': 'libcudnn.so.9', 'path': '/usr/local/cuda/lib64/libcudnn.so.9',"
		 " 'version': '9.1.0', 'wheel': '/v/libcudnn.so.9', 'wheel_version': '9.10.2', 'why': 'LD_LIBRARY_PATH', 'same': 'other'}]}") "}",
	 "library-conflict", "likely"},
	{"a cuDNN from before the GPU",
	 "{" GPU("NVIDIA GeForce RTX 5090", 12, 0, "") ", " ENV(TORCH, ", 'packages': [{'name': 'nvidia-cudnn-cu12',"
	 " 'version': '9.1.0.70'}]") "}", "library-predates-gpu", "likely"},
	{"a CUDA version from before the GPU",
	 "{" GPU("NVIDIA GeForce RTX 3090", 8, 6, "") ", " ENV(
		 "'version': '1.6.0+cu101', 'build': 'cuda', 'cuda': '10.1'",
		 "") ", 'code': [{'env': 0, 'torch': true, 'archs': 'sm_37 sm_50 sm_60 sm_70 sm_75 compute_75@6.4'}]}",
	 "library-predates-gpu", "likely"},
	{"a toolkit of another major", "{'host': {'tools': {'nvcc': '/usr/bin/nvcc', 'nvcc_version': '11.5'}}, 'variables': {'TORCH_CUDA_ARCH_LIST': '8.0'}}",
	 "nvcc-toolkit-mismatch", "possible"},
	{"a toolkit of another major, and what was built before",
	 "{'host': {'tools': {'nvcc': '/usr/bin/nvcc', 'nvcc_version': '11.5',"
	 " 'build_cache': '/h/.cache/torch_extensions'}}}", "nvcc-toolkit-mismatch", "possible"},
	{"a toolkit of another major in a project",
	 "{'host': {'tools': {'nvcc': '/usr/bin/nvcc', 'nvcc_version': '11.5', 'build_setup': '/w/setup.py'}}}",
	 "nvcc-toolkit-mismatch", "possible"},
	{"a toolkit of another major, and a package that compiles",
	 "{'host': {'tools': {'nvcc': '/usr/bin/nvcc', 'nvcc_version': '11.5'}}, " ENV(
		 TORCH, ", 'packages': [{'name': 'deepspeed', 'version': '0.16.4'}]") "}",
	 "nvcc-toolkit-mismatch", "possible"},
	{"a run-time compiler from before the GPU", "{" GPU("NVIDIA GB10", 12, 1, "") "}", "nvrtc-arch-unsupported",
	 "possible"},
	{"an assembler from before the GPU",
	 "{" GPU("NVIDIA GeForce RTX 5090", 12, 0, "") ", 'ptxas': [{'env': 0, 'cuda': 12040}]}",
	 "triton-ptxas-too-old", "possible"},
	{"FlashAttention on a Turing card", "{" GPU("Tesla T4", 7, 5, "") ", " ENV(TORCH, ", 'packages': [{'name': 'flash-attn', 'version': '2.8.0'}]") "}",
	 "hardware-feature-unsupported", "possible"},
};

static void sick__machines_are_told_what_is_wrong(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(sick) / sizeof(sick[0]); i++) {
		struct judged j;
		char *json = NULL;
		size_t size = 0;
		FILE *out;
		json_t *o;

		judge(&j, sick[i].change);
		out = open_memstream(&json, &size);
		doctor_json(out, j.d, &j.m, true);
		fclose(out);
		o = json_loads(json, 0, NULL);
		if (strcmp(verdict_cause(j.d->verdict), sick[i].cause) != 0 ||
		    strcmp(json_string_value(json_object_get(o, "certainty")), sick[i].certainty) != 0)
			fail_msg("%s: %s, %s instead of %s, %s", sick[i].name, verdict_cause(j.d->verdict),
				 json_string_value(json_object_get(o, "certainty")), sick[i].cause, sick[i].certainty);
		if (json_array_size(json_object_get(o, "fix")) == 0)
			fail_msg("%s: nothing is advised", sick[i].name);
		assert_int_equal(doctor_exit(j.d), 1);
		json_decref(o);
		free(json);
		end(&j);
	}
}

static const struct { const char *name, *change; } well[] = {
	{"a tree without the system's own files",
	 "{'host': {'os': {'id': null, 'kernel': null}}, " ENV(
		 TORCH,
		 ", 'loader': {'known': true, 'files': ["
		 "{'soname': 'libcudnn.so.9', 'needed_by': '/v/libtorch_cuda.so'}, {'soname': 'libc.so.6', 'needed_by': '/v/libtorch_cuda.so'}]}") "}"},
	{"as it is", "{}"},
	{"minor-version compatibility",
	 "{'host': {'kernel': {'version': '535.54.03'}}, 'nvml': {'driver': '535.54.03', 'cuda': 12020},"
	 " 'cuda': {'version': 12020}, 'python': {'libcuda': {'version': '535.54.03'}}}"},
	{"PyTorch is not installed", "{'python': {'environments': [{'prefix': '/usr', 'kind': 'system'}]}, 'code': []}"},
	{"exclusive mode, and nobody there",
	 "{" GPU("NVIDIA A30", 8, 0, ", 'compute_mode': 3, 'holders_known': true") "}"},
	{"one of two is hidden",
	 "{'variables': {'CUDA_VISIBLE_DEVICES': '1'}, 'nvml': {'gpus': [{'name': 'NVIDIA GeForce GTX 1080', 'uuid': 'GPU-2', 'cc_major': 6,"
	 " 'cc_minor': 1}, {'name': 'NVIDIA GeForce RTX 4090', 'uuid': 'GPU-1', 'cc_major': 8, 'cc_minor': 9}]}}"},
	{"a driver newer than all tables",
	 "{'host': {'kernel': {'version': '999.10'}}, 'nvml': {'driver': '999.10', 'cuda': 99000}, 'cuda': {'version': 99000},"
	 " 'python': {'libcuda': {'version': '999.10'}}}"},
	{"WSL", "{'host': {'wsl': {'version': 2, 'dxg': true, 'libcuda': true}, 'gpu': [], 'node': [], 'kernel': {'version': null, 'nvidia': false}},"
	 " 'python': {'libcuda': {'version': null, 'wsl': true}}}"},
	{"a container with all it needs", "{'host': {" CONTAINER "}}"},
	{"a second card for a virtual machine",
	 "{'host': {'gpu': [{'address': '0000:01:00.0', 'driver': 'nvidia', 'answers': true},"
	 " {'address': '0000:02:00.0', 'driver': 'vfio-pci', 'answers': true}]}}"},
	{"one of two for this job", "{'host': {'gpu': [{'address': '0000:01:00.0', 'driver': 'nvidia', 'answers': true},"
				    " {'address': '0000:02:00.0', 'driver': 'nvidia', 'answers': true}]}}"},
	{"one of eight for this container",
	 "{'host': {" CONTAINER ", 'gpu': [{'address': '0000:01:00.0', 'driver': 'nvidia', 'answers': true},"
	 " {'address': '0000:02:00.0', 'driver': 'nvidia', 'answers': true}]}}"},
	{"a toolkit of another major that builds nothing",
	 "{'host': {'tools': {'nvcc': '/usr/bin/nvcc', 'nvcc_version': '11.5'}}}"},
	{"a kernel log that cannot be read", "{'host': {'log': {'readable': false}}}"},
	{"cuda-compat that works",
	 "{" GPU("NVIDIA H200", 9, 0, "") ", 'python': {'libcuda': {'compat': true, 'version': '590.44.01'}}}"},
};

static void healthy__machines_stay_green(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(well) / sizeof(well[0]); i++) {
		struct judged j;

		judge(&j, well[i].change);
		if (doctor_exit(j.d) != 0)
			fail_msg("%s: %s", well[i].name, verdict_cause(j.d->verdict));
		end(&j);
	}
}

static void checks__that_need_a_failed_one_are_not_listed(void **state)
{
	struct judged j;

	(void)state;
	judge(&j, sick[0].change);
	assert_int_equal(find(&j, "gpu")->status, DOCTOR_FAIL);
	assert_null(find(&j, "driver"));
	assert_null(find(&j, "code"));
	/* but what does not follow from it is */
	assert_int_equal(find(&j, "torch")->status, DOCTOR_OK);
	assert_int_equal(find(&j, "variables")->status, DOCTOR_OK);
	end(&j);
}

static void nothing__known_is_no_verdict(void **state)
{
	struct machine m;
	struct err e = {0};
	json_t *o = json_pack("{s:i}", "cuwhy_bundle", 1);
	struct doctor *d;

	(void)state;
	assert_int_equal(machine_from_json(&m, o, &e), 0);
	d = doctor_judge(&m);
	assert_int_equal(doctor_exit(d), 2);
	assert_string_equal(verdict_cause(d->verdict), "unknown");
	doctor_free(d);
	machine_release(&m);
	json_decref(o);
}

/* Volta ends with branch 580: a wheel for CUDA 13 can never run there, and a newer driver would take the GPU away. */
static void advice__never_asks_for_a_driver_that_drops_the_gpu(void **state)
{
	struct judged j;
	char *json = NULL;
	size_t size = 0;
	FILE *out;

	(void)state;
	judge(&j,
	      "{" GPU("Tesla V100-SXM2-16GB", 7, 0,
		      "") "} {'host': {'kernel': {'version': '535.54.03'}}, 'nvml': {'driver': '535.54.03', 'cuda': 12020},"
			  " 'cuda': {'version': 12020}, 'python': {'libcuda': {'version': '535.54.03'}, 'environments': [{'major': 3, 'minor': 12, 'prefix': '/v',"
			  " 'torch': {'version': '2.14.0+cu132', 'build': 'cuda', 'cuda': '13.2'}}]}, 'code': []}");
	assert_int_equal(doctor_exit(j.d), 1);
	assert_string_equal(fact_text(&j.d->verdict->c, FACT_driver_newest), "580");
	assert_non_null(strstr(fact_text(&j.d->verdict->c, FACT_install_command), "cu126"));
	out = open_memstream(&json, &size);
	doctor_json(out, j.d, &j.m, false);
	fclose(out);
	assert_string_equal(verdict_cause(j.d->verdict), "gpu-too-old");
	assert_null(strstr(json, "nvidia-driver-"));	/* the driver that this wheel needs would not help: it has no code for the GPU */
	free(json);
	end(&j);
}

static void bundle__says_the_same_there_and_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(sick) / sizeof(sick[0]); i++) {
		struct judged j;
		struct machine again;
		struct err e = {0};
		struct doctor *d;
		json_t *o, *twice;

		judge(&j, sick[i].change);
		o = machine_to_json(&j.m);
		if (machine_from_json(&again, o, &e))
			fail_msg("%s: %s", sick[i].name, e.msg);
		twice = machine_to_json(&again);
		d = doctor_judge(&again);
		assert_string_equal(verdict_cause(d->verdict), verdict_cause(j.d->verdict));
		if (!json_equal(o, twice))
			fail_msg("%s: written twice, it differs", sick[i].name);
		doctor_free(d);
		machine_release(&again);
		json_decref(o);
		json_decref(twice);
		end(&j);
	}
}

static void bundle__that_is_none_is_refused_in_words(void **state)
{
	static const struct { const char *text, *word; } bad[] = {
		{"{}", "not a cuwhy bundle"},
		{"[]", "not a cuwhy bundle"},
		{"{'cuwhy_bundle': 2}", "version 2"},
		{"{'cuwhy_bundle': 1, 'hots': {}}", "hots"},
		{"{'cuwhy_bundle': 1, 'host': []}", "host"},
		{"{'cuwhy_bundle': 1, 'variables': {'A': 1}}", "variables.A"},
		{"{'cuwhy_bundle': 1, 'nvml': {'gpus': [{'mig': 'yes'}]}}", "nvml.gpus[0].mig"},
		{"{'cuwhy_bundle': 1, 'nvml': {'gpus': {}}}", "nvml.gpus"},
		{"{'cuwhy_bundle': 1, 'nvml': {'trouble': 'bad'}}", "nvml.trouble"},
		{"{'cuwhy_bundle': 1, 'cuda': {'init': 99999999999}}", "cuda.init"},
		{"{'cuwhy_bundle': 1, 'python': {'environments': [{'torch': {'verison': '2'}}]}}",
		 "python.environments[0].torch.verison"},
		{"{'cuwhy_bundle': 1, 'code': [{'env': 7}]}", "environment"},
		{"{'cuwhy_bundle': 1, 'python': {'environments': [{}]}, 'code': [{'env': 0, 'archs': 'sm_90 hello'}]}",
		 "hello"},
		{"{'cuwhy_bundle': 1, 'python': {'environments': [{}]}, 'code': [{'env': 0, 'sets': [{'count': -1}]}]}",
		 "targets"},
		{"{'cuwhy_bundle': 1, 'ptxas': [{}]}", "ptxas"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		json_t *o = parse(bad[i].text);
		struct err e = {0};
		struct machine m;

		if (machine_from_json(&m, o, &e) == 0)
			fail_msg("%s was taken", bad[i].text);
		if (!strstr(e.msg, bad[i].word))
			fail_msg("%s: %s", bad[i].text, e.msg);
		machine_release(&m);
		json_decref(o);
	}
}

static void bundle__holds_no_names_and_no_secrets(void **state)
{
	json_t *o = parse("{'variables': {'CUDA_HOME': '/home/alice/cuda', 'NCCL_SECRET': 'xyzzy', 'NCCL_NET': 'https://bob:pw@h/'},"
			  " 'nvml': {'gpus': [{'processes': [{'command': '/usr/bin/python train.py --key xyzzy'}]}]},"
		" 'python': {'environments': [{'prefix': '/home/carol.d/venv', 'interpreter': '/srv/plugh/bin/python'}]}}");
	char *removed, *text;

	(void)state;
	setenv("USER", "plugh", 1);
	removed = bundle_redact_for(o, NULL);
	text = json_dumps(o, 0);
	assert_null(strstr(text, "alice"));
	assert_null(strstr(text, "carol"));
	assert_null(strstr(text, "xyzzy"));
	assert_null(strstr(text, "bob"));
	assert_null(strstr(text, "plugh"));
	assert_non_null(strstr(text, "/home/user/cuda"));
	assert_non_null(strstr(text, "\"python\""));
	assert_non_null(strstr(removed, "of those that may be secrets (2)"));
	free(removed);
	free(text);
	json_decref(o);
}

/* Wherever it was found: in a variable that no program of ours reads, an address, a log. */
static void bundle__holds_nothing_that_looks_like_a_login_or_token(void **state)
{
	static const char *const kept[] = {
		"pip @ file:///srv/wheels/pip-23.whl",
		"GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7",
		"hf_transfer-0.1.9-cp38-abi3.so",
		"/opt/sk-learn/lib", "monkey=1", "user@host", "12:34:56", "https://pypi.org/simple/torch?version=2.1",
	};
	static const struct { const char *text, *left; } hidden[] = {
		{"https://me:xyzzy@h/x", "https://(removed)@h/x"},
		{"see https://xyzzy@h/x", "see https://(removed)@h/x"},
		{"me:xyzzy@h:22/x", "(removed)@h:22/x"},
		{"x ghp_xyzzy0123456789abcdef y", "x (removed) y"},
		{"AKIAxyzzy0123456789A", "(removed)"},
		{"eyJhbGciOiJIUzI1NiJ9.xyzzy.x", "(removed)"},
		{"https://x.blob/?sv=1&sig=xyzzy&st=2", "https://x.blob/?sv=1&sig=(removed)&st=2"},
		{"https://conda.h/t/xyzzy-12345/main", "https://conda.h/t/(removed)/main"},
		{"-----BEGIN OPENSSH KEY-----xyzzy", "(removed)"},
		{"Authorization: Bearer xyzzy", "Authorization: Bearer (removed)"},
	};
	json_t *o = json_object(), *texts = json_array(), *variables = json_object();
	char *removed, *text;

	(void)state;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		json_array_append_new(texts, json_string(kept[i]));
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		json_array_append_new(texts, json_string(hidden[i].text));
	json_object_set_new(variables, "torch_thing", json_string("xyzzy"));
	json_object_set_new(variables, "CUDA_VISIBLE_DEVICES", json_string("0,1"));
	json_object_set_new(o, "texts", texts);
	json_object_set_new(o, "variables", variables);
	removed = bundle_redact_for(o, NULL);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		assert_string_equal(json_string_value(json_array_get(texts, i)), kept[i]);
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		assert_string_equal(json_string_value(json_array_get(texts, sizeof(kept) / sizeof(kept[0]) + i)),
				    hidden[i].left);
	assert_string_equal(json_string_value(json_object_get(variables, "torch_thing")), "(removed)");
	assert_string_equal(json_string_value(json_object_get(variables, "CUDA_VISIBLE_DEVICES")), "0,1");
	text = json_dumps(o, 0);
	assert_null(strstr(text, "xyzzy"));
	free(removed);
	free(text);
	json_decref(o);
}

static void checks__name_causes_that_exist(void **state)
{
	static const char *const known[] = {"gpu",	 "module",    "nodes",	    "library",	 "driver",  "health",
					    "devices",	 "variables", "memory",	    "torch",	 "runtime", "code",
					    "libraries", "packages",  "extensions", "compilers", "peers",   NULL};

	(void)state;
	for (const struct cause *c = AT(kb_get()->first); c; c = AT(c->next)) {
		size_t i = 0;

		while (AT(c->check) && known[i] && strcmp(known[i], AT(c->check)) != 0)
			i++;
		if (AT(c->check) && !known[i])
			fail_msg("%s is a cause of '%s', which is no check", AT(c->id), AT(c->check));
	}
}

/* What a failing program prints, without examining the machine. */
static void words__of_a_failure_name_the_cause(void **state)
{
	static const struct { int code; const char *text, *cause; } said[] = {
		{217, "", "p2p-not-supported"},
		{802, "", "fabric-manager-not-ready"},
		{803, "", "driver-library-mismatch"},
		{804, "", "forward-compat-unsupported"},
		{805, "", "mps-unreachable"},
		{34, "", "driver-library-broken"},
		{46, "", "compute-mode-exclusive"},
		{0, "Torch not compiled with CUDA enabled", "cpu-only-build"},
		{0, "operator torchvision::nms does not exist", "torchvision-mismatch"},
		{0, "libcudnn.so.9: cannot open shared object file: No such file or directory", "wheel-packaging-defect"},
		{0, "libcurl.so.4: cannot open shared object file: No such file or directory", NULL},
		{0, "/x.so: undefined symbol: _ZN3c105ErrorC1ENS_14SourceLocationE", "extension-abi-mismatch"},
		{0, "/x.so: undefined symbol: my_function", NULL},
		{0, "libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12",
		 "library-conflict"},
		{0, "nvrtc: error: failed to open libnvrtc-builtins.so.11.1.", "wheel-packaging-defect"},
		{0, "Could not run 'torchvision::nms' with arguments from the 'CUDA' backend.", "torchvision-mismatch"},
		{0, "The NVIDIA driver on your system is too old (found version 8000).", "driver-too-old"},
		{0, "The detected CUDA version (11.5) mismatches the version that was used to compile PyTorch (12.1)",
		 "nvcc-toolkit-mismatch"},
		{0, "nvrtc: error: invalid value for --gpu-architecture (-arch)", "nvrtc-arch-unsupported"},
		{0, "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'", "triton-ptxas-too-old"},
		{0, "FlashAttention only supports Ampere GPUs or newer.", "hardware-feature-unsupported"},
		{0, "DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.",
		 "shm-too-small-dataloader"},
		{0, "Error while creating shared memory segment /dev/shm/nccl-x (size 9637888): No space left on device", "shm-too-small-nccl"},
		{0, "Error while creating shared memory segment /dev/shm/nccl-x: Permission denied",
		 "shm-permission-nccl"},
		{0, "cuDNN version incompatibility: PyTorch was compiled against (9, 1, 0) but found runtime version (8, 9, 2)", "library-conflict"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		struct pool pool = {0};
		struct casefile *f = pool_alloc(&pool, sizeof(*f));
		struct matches m;

		case_init(f, &pool);
		fact_set_number(f, FACT_error_code, said[i].code);
		fact_set_text(f, FACT_error_text, said[i].text);
		rules_match(&m, kb_get(), f, &pool);
		if (said[i].cause ? !m.n || strcmp(AT(m.list[0].cause->id), said[i].cause) != 0 : m.n > 0)
			fail_msg("%d %s: %s instead of %s", said[i].code, said[i].text,
				 m.n ? AT(m.list[0].cause->id) : "none", said[i].cause ? said[i].cause : "none");
		pool_release(&pool);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sick__machines_are_told_what_is_wrong),
		cmocka_unit_test(healthy__machines_stay_green),
		cmocka_unit_test(checks__that_need_a_failed_one_are_not_listed),
		cmocka_unit_test(checks__name_causes_that_exist),
		cmocka_unit_test(words__of_a_failure_name_the_cause),
		cmocka_unit_test(nothing__known_is_no_verdict),
		cmocka_unit_test(advice__never_asks_for_a_driver_that_drops_the_gpu),
		cmocka_unit_test(bundle__says_the_same_there_and_back),
		cmocka_unit_test(bundle__that_is_none_is_refused_in_words),
		cmocka_unit_test(bundle__holds_no_names_and_no_secrets),
		cmocka_unit_test(bundle__holds_nothing_that_looks_like_a_login_or_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
