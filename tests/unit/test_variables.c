/* SPDX-License-Identifier: Apache-2.0
 * Environment variables: slips, bad and contradictory values, CUDA_VISIBLE_DEVICES, PYTORCH_ALLOC_CONF.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/err.h"
#include "read/machine/machine.h"
#include "read/machine/variables.h"

static struct pool pool;

static int release(void **state)
{
	(void)state;
	pool_release(&pool);
	return 0;
}

static const struct variables *judge(const char *const *env)
{
	static struct variables v;

	variables_judge(&v, &pool, env);
	return &v;
}

#define JUDGE(...)	judge((const char *const[]){__VA_ARGS__, NULL})

static const struct var_finding *finding(const struct variables *v, const char *name, enum var_kind kind)
{
	for (size_t i = 0; i < v->n_findings; i++)
		if (strcmp(v->finding[i].name, name) == 0 && v->finding[i].kind == kind)
			return &v->finding[i];
	return NULL;
}

static void names__a_slip_is_named_with_what_was_meant(void **state)
{
	static const struct { const char *set, *name, *meant; } c[] = {
		{"CUDA_VISIBLE_DEVICE=0", "CUDA_VISIBLE_DEVICE", "CUDA_VISIBLE_DEVICES"},
		{"CUDA_VISABLE_DEVICES=0", "CUDA_VISABLE_DEVICES", "CUDA_VISIBLE_DEVICES"},
		{"CUAD_VISIBLE_DEVICES=0", "CUAD_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"},
		{"cuda_visible_devices=0", "cuda_visible_devices", "CUDA_VISIBLE_DEVICES"},
		{"CUDA_LAUNCH_BLOCKIN=1", "CUDA_LAUNCH_BLOCKIN", "CUDA_LAUNCH_BLOCKING"},
		{"PYTORCH_CUDA_ALLOC_CONFIG=x", "PYTORCH_CUDA_ALLOC_CONFIG", "PYTORCH_CUDA_ALLOC_CONF"},
		{"NCLL_DEBUG=INFO", "NCLL_DEBUG", "NCCL_DEBUG"},
		{"NCCL_P2P_DISABLED=1", "NCCL_P2P_DISABLED", "NCCL_P2P_DISABLE"},
		{"NCCL_SOCKET_IFNAMES=eth0", "NCCL_SOCKET_IFNAMES", "NCCL_SOCKET_IFNAME"},
		{"TORCH_CUDA_ARCHLIST=8.0", "TORCH_CUDA_ARCHLIST", "TORCH_CUDA_ARCH_LIST"},
		{"TORCH_NCCL_BLOCKNG_WAIT=1", "TORCH_NCCL_BLOCKNG_WAIT", "TORCH_NCCL_BLOCKING_WAIT"},
		{"LD_LIBARY_PATH=/x", "LD_LIBARY_PATH", "LD_LIBRARY_PATH"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		const struct var_finding *f = finding(JUDGE(c[i].set), c[i].name, VAR_MISSPELT);

		if (!f)
			fail_msg("%s was not noticed", c[i].set);
		assert_string_equal(f->other, c[i].meant);
		assert_non_null(strstr(f->text, c[i].meant));
	}
}

static void names__what_nobody_knows_is_said_in_closed_families_only(void **state)
{
	(void)state;
	assert_non_null(finding(JUDGE("NCCL_FROBNICATE_EVERYTHING=1"), "NCCL_FROBNICATE_EVERYTHING", VAR_UNKNOWN));
	assert_non_null(finding(JUDGE("CUDA_USE_MAGIC_NUMBERS=1"), "CUDA_USE_MAGIC_NUMBERS", VAR_UNKNOWN));
	assert_int_equal(JUDGE("TORCHINDUCTOR_SOMETHING_BRAND_NEW=1")->n_findings, 0);
	assert_int_equal(JUDGE("TORCHINDUCTOR_SOMETHING_BRAND_NEW=1")->n_set, 1);
}

/* What images of CUDA and PyTorch set, and ordinary shells. */
static void names__ordinary_environments_are_quiet(void **state)
{
	static const char *const env[] = {"PATH=/usr/local/cuda/bin:/usr/bin",
					  "HOME=/root",
					  "LANG=C.UTF-8",
					  "HOSTNAME=a",
					  "TERM=xterm",
					  "SHLVL=1",
					  "OLDPWD=/",
					  "NVIDIA_VISIBLE_DEVICES=all",
					  "NVIDIA_DRIVER_CAPABILITIES=compute,utility,video",
					  "NVIDIA_REQUIRE_CUDA=cuda>=12.4 brand=tesla",
					  "NVARCH=x86_64",
					  "NV_CUDA_LIB_VERSION=12.4.1-1",
					  "NV_LIBNCCL_PACKAGE=libnccl2=2.21.5",
					  "CUDA_VERSION=12.4.1",
					  "NCCL_VERSION=2.21.5",
					  "CUBLAS_VERSION=12.4.5.8",
					  "CUDNN_VERSION=9.1.0",
					  "CUDA_HOME=/usr/local/cuda",
					  "CUDA_DRIVER_VERSION=550.54.14",
					  "CUDA_COMPONENT_LIST=crt nvrtc",
					  "CUDA_ARCH_LIST=7.5 8.0",
					  "LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64",
					  "PYTORCH_VERSION=2.4.0",
					  "PYTORCH_BUILD_NUMBER=0",
					  "PYTORCH_HOME=/opt/pytorch",
					  "TORCH_CUDA_ARCH_LIST=7.5 8.0 8.6 9.0+PTX",
					  "CUDA_MODULE_LOADING=LAZY",
					  "TORCH_NCCL_USE_COMM_NONBLOCKING=0",
					  "CUDA_BINARY_LOADER_THREAD_COUNT=8",
					  "RANK=0",
					  "WORLD_SIZE=8",
					  "LOCAL_RANK=0",
					  "LOCAL_WORLD_SIZE=8",
					  "MASTER_ADDR=10.0.0.1",
					  "MASTER_PORT=29500",
					  "OMP_NUM_THREADS=8",
					  "CUDA_VISIBLE_DEVICES=0,1",
					  "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
					  "NCCL_SOCKET_IFNAME=eth0",
					  "NCCL_IB_HCA=mlx5",
					  "NCCL_DEBUG=WARN",
					  "CUDA_DEVICE_ORDER=PCI_BUS_ID",
					  "CUBLAS_WORKSPACE_CONFIG=:4096:8",
					  "TRITON_CACHE_DIR=/tmp/t",
					  "XLA_PYTHON_CLIENT_PREALLOCATE=false",
					  NULL};
	const struct variables *v;

	(void)state;
	v = judge(env);
	if (v->n_findings)
		fail_msg("%s: %s", v->finding[0].name, v->finding[0].text);
	assert_true(v->known);
	assert_false(v->left_out);
}

static void values__those_that_are_refused_are_named(void **state)
{
	static const char *const bad[] = {
		"CUDA_LAUNCH_BLOCKING=yes", "CUDA_DEVICE_ORDER=PCI", "CUDA_MODULE_LOADING=FAST", "CUDA_DEVICE_MAX_CONNECTIONS=64",
		"CUDA_SCALE_LAUNCH_QUEUES=8x",
		"NCCL_DEBUG=VERBOSE",
		"NCCL_P2P_LEVEL=NVLINK",
		"NCCL_ALGO=Ringg",
		"NCCL_PROTO=Simple,LL256",
		"NCCL_NTHREADS=100", "TORCH_CUDA_ARCH_LIST=sm_80", "TORCH_CUDA_ARCH_LIST=8", "CUBLAS_WORKSPACE_CONFIG=4096:8",
		"TORCH_DISTRIBUTED_DEBUG=FULL", "MASTER_PORT=99999", "RANK=one", "NVIDIA_DRIVER_CAPABILITIES=compute,gpu",
		"NVIDIA_DRIVER_CAPABILITIES=utility", "CUDA_LAUNCH_BLOCKING=\"1\"", "TORCH_NCCL_ASYNC_ERROR_HANDLING=9",
		"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=half",
		"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:true",
		"CUDA_VISIBLE_DEVICES=all",
		"CUDA_VISIBLE_DEVICES=0,1,0",
	};
	char name[64];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(bad[i], "="), bad[i]);
		if (!finding(JUDGE(bad[i]), name, VAR_BAD_VALUE))
			fail_msg("%s was not noticed", bad[i]);
	}
}

static void values__those_that_are_taken_are_quiet(void **state)
{
	static const char *const good[] = {
		"CUDA_LAUNCH_BLOCKING=0",
		"CUDA_LAUNCH_BLOCKING=",
		"CUDA_MODULE_LOADING=lazy",
		"NCCL_DEBUG=info",
		"NCCL_DEBUG=Trace",
		"NCCL_NET_GDR_LEVEL=SYS",
		"NCCL_NET_GDR_LEVEL=2",
		"TORCH_CUDA_ARCH_LIST=7.0;8.0 9.0a+PTX;Hopper;12.0f",
		"CUBLAS_WORKSPACE_CONFIG=:16:8:4096:2",
		"CUBLAS_WORKSPACE_CONFIG=0:0",
		"TORCH_DISTRIBUTED_DEBUG=INFO",
		"NVIDIA_DRIVER_CAPABILITIES=all",
		"TORCH_NCCL_DESYNC_DEBUG=true",
		"CUDA_VISIBLE_DEVICES=GPU-8932f937",
		"CUDA_VISIBLE_DEVICES=0, 1",
		"CUDA_VISIBLE_DEVICES=0,1,",
		"NCCL_NVLS_ENABLE=2",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		const struct variables *v = JUDGE(good[i]);

		if (v->n_findings)
			fail_msg("%s: %s", good[i], v->finding[0].text);
	}
}

static void values__what_should_not_be_left_on(void **state)
{
	static const char *const names[] = {
		"CUDA_LAUNCH_BLOCKING", "NCCL_P2P_DISABLE",	"NCCL_SHM_DISABLE",
		"CUDA_FORCE_PTX_JIT",	"CUDA_DISABLE_PTX_JIT", "PYTORCH_NO_CUDA_MEMORY_CACHING",
		"TRITON_INTERPRET",	"KMP_DUPLICATE_LIB_OK", "CUDA_DEVICE_WAITS_ON_EXCEPTION"};
	char entry[96];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct var_finding *f;

		snprintf(entry, sizeof(entry), "%s=1", names[i]);
		f = finding(JUDGE(entry), names[i], VAR_DANGEROUS);
		assert_non_null(f);
		assert_non_null(strstr(f->advice, names[i]));
		snprintf(entry, sizeof(entry), "%s=", names[i]);
		assert_null(finding(JUDGE(entry), names[i], VAR_DANGEROUS));
	}
	assert_non_null(
		finding(JUDGE("TORCH_NCCL_ASYNC_ERROR_HANDLING=0"), "TORCH_NCCL_ASYNC_ERROR_HANDLING", VAR_DANGEROUS));
	assert_null(finding(JUDGE("TORCH_NCCL_ASYNC_ERROR_HANDLING=1"), "TORCH_NCCL_ASYNC_ERROR_HANDLING", VAR_DANGEROUS));
	assert_non_null(finding(JUDGE("CUDA_MODULE_LOADING=EAGER"), "CUDA_MODULE_LOADING", VAR_NOTE));
	assert_non_null(finding(JUDGE("NCCL_BLOCKING_WAIT=1"), "NCCL_BLOCKING_WAIT", VAR_OBSOLETE));
}

static void pairs__that_do_not_fit_together(void **state)
{
	static const struct { const char *a, *b, *name; } c[] = {
		{"PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64", "PYTORCH_ALLOC_CONF=expandable_segments:True",
		 "PYTORCH_CUDA_ALLOC_CONF"},
		{"CUDA_VISIBLE_DEVICES=1", "NVIDIA_VISIBLE_DEVICES=3", "CUDA_VISIBLE_DEVICES"},
		{"CUDA_VISIBLE_DEVICES=0", "NVIDIA_VISIBLE_DEVICES=none", "CUDA_VISIBLE_DEVICES"},
		{"CUDA_FORCE_PTX_JIT=1", "CUDA_DISABLE_PTX_JIT=1", "CUDA_DISABLE_PTX_JIT"},
		{"CUDA_HOME=/usr/local/cuda-12.4", "CUDA_PATH=/usr/local/cuda-11.8", "CUDA_PATH"},
		{"RANK=8", "WORLD_SIZE=8", "RANK"},
		{"NCCL_P2P_DISABLE=1", "NCCL_P2P_LEVEL=NVL", "NCCL_P2P_DISABLE"},
		{"CUDA_CACHE_DISABLE=1", "CUDA_CACHE_PATH=/tmp/c", "CUDA_CACHE_DISABLE"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		if (!finding(JUDGE(c[i].a, c[i].b), c[i].name, VAR_CONTRADICTS))
			fail_msg("%s and %s", c[i].a, c[i].b);
	assert_null(finding(JUDGE("CUDA_VISIBLE_DEVICES=0", "NVIDIA_VISIBLE_DEVICES=3"), "CUDA_VISIBLE_DEVICES",
			    VAR_CONTRADICTS));
	assert_null(finding(JUDGE("CUDA_VISIBLE_DEVICES=7", "NVIDIA_VISIBLE_DEVICES=all"), "CUDA_VISIBLE_DEVICES",
			    VAR_CONTRADICTS));
	assert_null(finding(JUDGE("CUDA_VISIBLE_DEVICES=7", "NVIDIA_VISIBLE_DEVICES=void"), "CUDA_VISIBLE_DEVICES",
			    VAR_CONTRADICTS));
	assert_null(finding(JUDGE("PYTORCH_CUDA_ALLOC_CONF=a:1", "PYTORCH_ALLOC_CONF=a:1"), "PYTORCH_CUDA_ALLOC_CONF",
			    VAR_CONTRADICTS));
	assert_int_equal(JUDGE("RANK=7", "WORLD_SIZE=8")->n_findings, 0);
}

static void values__absurd_ones_are_survived(void **state)
{
	size_t n = 4u << 20;
	char *huge = malloc(n + 64), *many[3000];
	const struct variables *v;
	int prefix;

	(void)state;
	prefix = sprintf(huge, "CUDA_VISIBLE_DEVICES=");
	memset(huge + prefix, ',', n);
	huge[prefix + n] = '\0';
	v = JUDGE(huge, "NCCL_DEBUG=\x01\x02\xff", "PYTORCH_CUDA_ALLOC_CONF=[[[[", "=", "", "CUDA_", "NCCL_DEBUG=INFO",
		  "NOTHING", "=CUDA_HOME");
	assert_int_equal(variables_find(v, "CUDA_VISIBLE_DEVICES")->length, n);
	assert_true(variables_find(v, "CUDA_VISIBLE_DEVICES")->odd);
	assert_true(strlen(variables_get(v, "CUDA_VISIBLE_DEVICES")) <= VALUE_MAX);
	assert_non_null(finding(v, "NCCL_DEBUG", VAR_BAD_VALUE));
	assert_string_equal(variables_get(v, "NCCL_DEBUG"), "  ?");	/* the first one counts */
	memset(huge + prefix, '7', n);
	JUDGE(huge);
	memset(huge, 'A', n);
	huge[n / 2] = '=';
	assert_int_equal(JUDGE(huge)->n_set, 0);
	for (size_t i = 0; i < 2999; i++) {
		many[i] = malloc(64);
		snprintf(many[i], 64, "NCCL_NUMBER_%zu=1", i);
	}
	many[2999] = NULL;
	v = judge((const char *const *)many);
	assert_int_equal(v->n_set, VARIABLES_MAX);
	assert_true(v->left_out);
	for (size_t i = 0; i < 2999; i++)
		free(many[i]);
	free(huge);
	assert_false(judge(NULL)->known);
}

static const char *const mig0[] = {"MIG-11112222-3333-4444-5555-666677778888",
				   "MIG-99992222-3333-4444-5555-666677778888", NULL};
static const struct visible_gpu four[] = {
	{"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", NULL}, {"GPU-8932aaaa-d72c-4106-c12f-20bd9faed9f6", NULL},
	{"GPU-11112222-d72c-4106-c12f-20bd9faed9f6", mig0}, {"GPU-33334444-d72c-4106-c12f-20bd9faed9f6", NULL},
};

static void visible__as_cuda_takes_it(void **state)
{
	static const struct { const char *value; int n; int gpu[4]; enum visible_end end; const char *at; } c[] = {
		{NULL, 4, {0, 1, 2, 3}, VISIBLE_END, NULL}, {"", 0, {0}, VISIBLE_END, NULL}, {" ", 0, {0}, VISIBLE_END, NULL},
		{"0", 1, {0}, VISIBLE_END, NULL},
		{"2,1", 2, {2, 1}, VISIBLE_END, NULL},
		{"0,2,-1,1", 2, {0, 2}, VISIBLE_NEGATIVE, "-1"},
		{"-1", 0, {0}, VISIBLE_NEGATIVE, "-1"},
		{"0,4,1", 1, {0}, VISIBLE_NO_SUCH_GPU, "4"},
		{"7", 0, {0}, VISIBLE_NO_SUCH_GPU, "7"},
		{"1gpu2,2ampere", 2, {1, 2}, VISIBLE_END, NULL}, {"2, +3, -0, 1", 4, {2, 3, 0, 1}, VISIBLE_END, NULL},
		{"one,two,3", 0, {0}, VISIBLE_NOT_A_NUMBER, "one"},
		{"3,2,two,1", 2, {3, 2}, VISIBLE_NOT_A_NUMBER, "two"},
		{"0,1,2,1", 0, {0}, VISIBLE_TWICE, "1"},
		{"0,,1", 1, {0}, VISIBLE_NOT_A_NUMBER, ""},
		{"0,1,", 2, {0, 1}, VISIBLE_END, NULL},
		{"NoDevFiles", 0, {0}, VISIBLE_NEGATIVE, "NoDevFiles"},
		{"99999999999999999999", 0, {0}, VISIBLE_NO_SUCH_GPU, "99999999999999999999"},
		{"GPU-8932f937", 1, {0}, VISIBLE_END, NULL}, {"GPU-8932", 0, {0}, VISIBLE_AMBIGUOUS, "GPU-8932"},
		{"GPU-3333,GPU-1111", 2, {3, 2}, VISIBLE_END, NULL},
		{"GPU-3333,GPU-3333", 0, {0}, VISIBLE_TWICE, "GPU-3333"},
		{"GPU-3333,GPU-ffff,GPU-1111", 1, {3}, VISIBLE_NO_SUCH_GPU, "GPU-ffff"},
		{"GPU-3333,1", 1, {3}, VISIBLE_MIXED, "1"},
		{"0,GPU-3333", 1, {0}, VISIBLE_MIXED, "GPU-3333"}, {"MIG-1111", 1, {2}, VISIBLE_END, NULL},
		{"MIG-11112222-3333-4444-5555-666677778888,MIG-9999", 1, {2}, VISIBLE_MIG_SECOND, "MIG-9999"},
		{"MIG-GPU-11112222-d72c-4106-c12f-20bd9faed9f6/7/0", 1, {2}, VISIBLE_END, NULL},
		{"MIG-abcd", 0, {0}, VISIBLE_NO_SUCH_GPU, "MIG-abcd"},
		{"all", 0, {0}, VISIBLE_NOT_A_NUMBER, "all"},
	};
	struct visible v;

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		visible_parse(&v, &pool, c[i].value, four, 4);
		if (v.n != c[i].n || v.end != c[i].end)
			fail_msg("'%s' gave %d GPUs, %s", c[i].value, v.n, visible_end_id(v.end));
		for (int k = 0; k < v.n; k++)
			assert_int_equal(v.gpu[k], c[i].gpu[k]);
		if (c[i].at)
			assert_string_equal(v.stopped_at, c[i].at);
		else
			assert_null(v.stopped_at);
	}
}

static void visible__without_the_gpus_numbers_are_believed(void **state)
{
	struct visible v;

	(void)state;
	visible_parse(&v, &pool, "0,5", NULL, -1);
	assert_int_equal(v.n, 2);
	assert_int_equal(v.gpu[1], 5);
	visible_parse(&v, &pool, NULL, NULL, -1);
	assert_int_equal(v.n, -1);
	visible_parse(&v, &pool, "GPU-1,GPU-2", NULL, -1);
	assert_int_equal(v.n, 2);
	assert_int_equal(v.gpu[0], -1);
	visible_parse(&v, &pool, "GPU-1,GPU-1", NULL, -1);
	assert_int_equal(v.end, VISIBLE_TWICE);
	visible_parse(&v, &pool, "0", four, 0);
	assert_int_equal(v.end, VISIBLE_NO_SUCH_GPU);
}

static void alloc__good_ones_are_taken_apart(void **state)
{
	struct alloc_conf c;

	(void)state;
	alloc_conf_parse(&c, &pool, "V", "expandable_segments:True, max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,1024:4,>:8],backend:native");
	assert_int_equal(c.n, 4);
	assert_null(c.mistake);
	assert_int_equal(c.expandable_segments, 1);
	assert_int_equal(c.max_split_size_mb, 128);
	assert_string_equal(c.item[2].value, "[256:1,512:2,1024:4,>:8]");
	assert_null(c.item[2].mistake);
	assert_false(c.item[1].fatal);
	assert_string_equal(c.backend, "native");
	alloc_conf_parse(&c, &pool, "V", "garbage_collection_threshold:0.8,per_process_memory_fraction:0.9,");
	assert_null(c.item[0].mistake);
	assert_true(c.garbage_collection_threshold > 0.79 && c.garbage_collection_threshold < 0.81);
	alloc_conf_parse(&c, &pool, "V", "garbage_collection_threshold:0.8");
	assert_non_null(c.item[0].mistake);	/* nothing happens without a fraction, but nothing fails */
	assert_false(c.item[0].fatal);
	alloc_conf_parse(&c, &pool, "V", "max_split_size_mb:512MB");
	assert_false(c.item[0].fatal);
	alloc_conf_parse(&c, &pool, "V", "");
	assert_int_equal(c.n, 0);
	alloc_conf_parse(&c, &pool, "V", NULL);
	assert_null(c.variable);
}

static void alloc__mistakes_that_end_the_program(void **state)
{
	static const struct { const char *value, *says; } c[] = {
		{"expandable_segments:true", "True or False"},
		{"expandable_segments=True", "':'"},
		{"expandable_segment:True", "did you mean expandable_segments"},
		{"max_split_size_mb:10", "at least 20"},
		{"max_split_size_mb:large", "at least 20"},
		{"max_split_size_mb", "no value"},
		{"garbage_collection_threshold:1.0", "less than 1"},
		{"garbage_collection_threshold:0", "more than 0"},
		{"backend:async", "cudaMallocAsync"},
		{"roundup_power2_divisions:3", "power of two"}, {"roundup_power2_divisions:[256:3]", "power of two"},
		{"roundup_power2_divisions:[300:2]", "power of two"},
		{"pinned_num_register_threads:256", "128"},
		{",", "does not know"},
		{"\"expandable_segments:True\"", "quotation"},
		{"max_split_size_mb:-1", "at least 20"},
		{"per_process_memory_fraction:1.5", "between 0 and 1"},
	};
	struct alloc_conf a;

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		alloc_conf_parse(&a, &pool, "V", c[i].value);
		if (a.n < 1 || !a.item[0].fatal || !strstr(a.item[0].mistake, c[i].says))
			fail_msg("%s: %s", c[i].value, a.n ? a.item[0].mistake : "nothing");
	}
	alloc_conf_parse(&a, &pool, "V", "roundup_power2_divisions:[256:1");
	assert_non_null(a.mistake);
	alloc_conf_parse(&a, &pool, "V", "backend:cudaMallocAsync,max_split_size_mb:64");
	assert_non_null(strstr(a.item[1].mistake, "ignores"));
	assert_false(a.item[1].fatal);
}

static void read__the_environment_of_a_captured_process(void **state)
{
	char root[] = "/tmp/cuwhy-variables-XXXXXX", path[128];
	const char *const *env;

	(void)state;
	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/proc/7", root);
	assert_int_equal(fs_mkdirs(path, NULL), 0);
	snprintf(path, sizeof(path), "%s/proc/7/environ", root);
	assert_int_equal(fs_write(path, "A=1\0NCCL_DEBUG=INFO\0cut", 23, NULL), 0);
	env = variables_read(&pool, root, 7);
	assert_non_null(env);
	assert_string_equal(env[1], "NCCL_DEBUG=INFO");
	assert_string_equal(env[2], "cut");
	assert_null(env[3]);
	assert_null(variables_read(&pool, root, 8));
	assert_non_null(variables_read(&pool, "", 0));
	fs_remove_dir(root, 3);
}

static void bundle__there_and_back_is_judged_the_same(void **state)
{
	static const char *const env[] = {"CUDA_LAUNCH_BLOCKING=1", "NCCL_DEBUG=\xff", "HOME=/root",
					  "CUDA_VISIBLE_DEVICE=", NULL};
	struct machine m = {.made_by = "test"}, again;
	struct err e;
	json_t *o;

	(void)state;
	host_unknown(&m.host);
	variables_judge(&m.variables, &m.pool, env);
	o = machine_to_json(&m);
	assert_int_equal(machine_from_json(&again, o, &e), 0);
	assert_int_equal(again.variables.n_set, m.variables.n_set);
	assert_int_equal(again.variables.n_findings, m.variables.n_findings);
	assert_null(variables_get(&again.variables, "HOME"));
	assert_null(json_object_get(json_object_get(o, "variables"), "HOME"));
	json_decref(o);
	machine_release(&again);
	machine_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names__a_slip_is_named_with_what_was_meant),
		cmocka_unit_test(names__what_nobody_knows_is_said_in_closed_families_only),
		cmocka_unit_test(names__ordinary_environments_are_quiet),
		cmocka_unit_test(values__those_that_are_refused_are_named),
		cmocka_unit_test(values__those_that_are_taken_are_quiet),
		cmocka_unit_test(values__what_should_not_be_left_on),
		cmocka_unit_test(pairs__that_do_not_fit_together),
		cmocka_unit_test(values__absurd_ones_are_survived),
		cmocka_unit_test(visible__as_cuda_takes_it),
		cmocka_unit_test(visible__without_the_gpus_numbers_are_believed),
		cmocka_unit_test(alloc__good_ones_are_taken_apart),
		cmocka_unit_test(alloc__mistakes_that_end_the_program),
		cmocka_unit_test(read__the_environment_of_a_captured_process),
		cmocka_unit_test(bundle__there_and_back_is_judged_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, release);
}
