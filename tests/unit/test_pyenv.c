/* SPDX-License-Identifier: Apache-2.0
 * Python environments on generated trees: found, read, compared with what torch needs, and never trusted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "read/machine/pyenv/packaging.h"
#include "read/machine/pyenv/process.h"
#include "read/machine/pyenv/pyenv.h"
#include "read/machine/pyenv/torch.h"
#include "pyenv_make.h"

#define SITE	"/v/lib/python3.12/site-packages"
#define NVIDIA	SITE "/nvidia"

static struct pyenvs envs;
static const char *variables[16];
static struct pyenv_input input;

static int setup(void **state)
{
	(void)state;
	make_begin();
	memset(variables, 0, sizeof(variables));
	input = (struct pyenv_input){.root = make_root, .environ = variables, .cwd = "/project"};
	make_dir("/project");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	pyenv_release(&envs);
	make_end();
	return 0;
}

static void set_variable(const char *assignment)
{
	int i = 0;

	while (variables[i])
		i++;
	assert_true(i < 15);
	variables[i] = assignment;
}

static const struct pyenv *scan(void)
{
	pyenv_release(&envs);
	pyenv_scan(&envs, &input);
	return envs.n_envs ? &envs.env[0] : NULL;
}

static void make_program(const char *path)
{
	make_elf(path, &(struct elf_spec){0});
	assert_int_equal(chmod(make_path(path), 0755), 0);
}

/* A venv in /v, of the Python in /opt/py. */
static void make_venv(const char *more)
{
	char text[300];

	make_program("/opt/py/bin/python3.12");
	make_link("/v/bin/python", "/opt/py/bin/python3.12");
	snprintf(text, sizeof(text), "home = /opt/py/bin\nversion = 3.12.4\n%s", more);
	make_file("/v/pyvenv.cfg", text);
	make_dir(SITE);
	input.python = "/v";
}

static void make_package(const char *site, const char *name, const char *version, const char *metadata, const char *record)
{
	char path[512], text[2048];

	snprintf(path, sizeof(path), "%s/%s-%s.dist-info/METADATA", site, name, version);
	snprintf(text, sizeof(text), "Metadata-Version: 2.1\nName: %s\nVersion: %s\n%s\nRequires-Dist: not-a-header==1\n",
		 name, version, metadata);
	make_file(path, text);
	snprintf(path, sizeof(path), "%s/%s-%s.dist-info/RECORD", site, name, version);
	make_file(path, record);
}

#define VERSION_CUDA "from typing import Optional\n__version__ = '2.6.0+cu124'\ncuda: Optional[str] = '12.4'\n" \
		     "git_version = 'abc'\nhip: Optional[str] = None\n"

static void make_torch(const char *version_py)
{
	make_file(SITE "/torch/__init__.py", "");
	make_file(SITE "/torch/version.py", version_py);
	make_dir(SITE "/torch/lib");
	make_package(SITE, "torch", "2.6.0", "", "torch/__init__.py,,\n");
}

static void finds_the_python_of_path(void **state)
{
	const struct pyenv *e;

	(void)state;
	make_venv("include-system-site-packages = false\n");
	input.python = NULL;
	make_program("/usr/bin/python3.11");
	make_link("/usr/bin/python3", "python3.11");
	make_dir("/usr/lib/python3/dist-packages");
	set_variable("PATH=/v/bin:/usr/bin");
	set_variable("VIRTUAL_ENV=/v");
	e = scan();
	assert_int_equal(envs.n_envs, 2);
	assert_int_equal(e->kind, PYENV_VENV);
	assert_int_equal(e->origin, PYENV_PATH | PYENV_VIRTUAL_ENV);
	assert_string_equal(e->prefix, "/v");
	assert_string_equal(e->base, "/opt/py");
	assert_int_equal(e->minor, 12);
	assert_int_equal(e->micro, 4);
	assert_int_equal(e->n_folders, 2);
	assert_string_equal(e->folder[1].path, SITE);
	assert_int_equal(envs.env[1].kind, PYENV_SYSTEM);
	assert_int_equal(envs.env[1].minor, 11);
	assert_int_equal(envs.env[1].origin, PYENV_USR);
}

/* VIRTUAL_ENV may be left over from a shell whose PATH was changed since: the one in PATH is what runs. */
static void believes_path_before_virtual_env(void **state)
{
	(void)state;
	make_venv("");
	input.python = NULL;
	make_program("/usr/bin/python3");
	make_dir("/usr/lib/python3.11/site-packages");
	set_variable("PATH=/usr/bin");
	set_variable("VIRTUAL_ENV=/v");
	assert_string_equal(scan()->prefix, "/usr");
	assert_string_equal(envs.env[1].prefix, "/v");
	assert_int_equal(envs.env[1].origin, PYENV_VIRTUAL_ENV);
}

static void prefers_python3_to_an_old_python(void **state)
{
	(void)state;
	make_program("/usr/bin/python2.7");
	make_link("/usr/bin/python", "python2.7");
	make_program("/usr/bin/python3.9");
	make_link("/usr/bin/python3", "python3.9");
	set_variable("PATH=/usr/bin");
	assert_int_equal(scan()->minor, 9);
}

static void follows_shims_of_pyenv(void **state)
{
	const struct pyenv *e;

	(void)state;
	make_file("/home/u/.pyenv/shims/python", "#!/bin/sh\nexec pyenv exec python\n");
	assert_int_equal(chmod(make_path("/home/u/.pyenv/shims/python"), 0755), 0);
	make_file("/home/u/.pyenv/version", "3.10.9\n");
	make_program("/home/u/.pyenv/versions/3.10.9/bin/python3.10");
	make_link("/home/u/.pyenv/versions/3.10.9/bin/python", "python3.10");
	set_variable("PATH=/home/u/.pyenv/shims");
	e = scan();
	assert_string_equal(e->prefix, "/home/u/.pyenv/versions/3.10.9");
	assert_int_equal(e->minor, 10);
	make_file("/project/.python-version", "9.9.9\n");
	e = scan();
	assert_int_equal(e->kind, PYENV_UNKNOWN);
	assert_non_null(strstr(e->reason, "versions/9.9.9/bin/python"));
	set_variable("PYENV_VERSION=3.10.9");
	assert_string_equal(scan()->prefix, "/home/u/.pyenv/versions/3.10.9");
}

static void says_when_a_venv_is_broken(void **state)
{
	const struct pyenv *e;

	(void)state;
	make_venv("");
	assert_int_equal(unlink(make_path("/opt/py/bin/python3.12")), 0);
	e = scan();
	assert_string_equal(e->prefix, "/v");
	assert_null(e->interpreter);
	assert_non_null(e->reason);
}

static void takes_what_was_asked_for(void **state)
{
	(void)state;
	make_venv("");
	assert_int_equal(scan()->origin, PYENV_ASKED);
	input.python = "/v/bin/python";
	assert_string_equal(scan()->prefix, "/v");
	input.python = SITE;
	make_torch(VERSION_CUDA);
	assert_string_equal(scan()->torch.dir, SITE "/torch");
	input.python = "/nowhere";
	assert_null(scan());
	assert_non_null(strstr(envs.reason, "/nowhere"));
	input.python = "/v/pyvenv.cfg";
	assert_int_equal(scan()->kind, PYENV_VENV);	/* a file next to pyvenv.cfg: Python would find it, too */
	input.python = "";
	assert_null(scan());
}

static void reads_conda(void **state)
{
	const struct pyenv *e;
	const struct py_package *p;

	(void)state;
	make_program("/c/bin/python3.11");
	make_link("/c/bin/python", "python3.11");
	make_file("/c/conda-meta/pytorch-2.5.1-py3.11_cuda12.1_cudnn9.1.0_0.json", "{}");
	make_file("/c/conda-meta/history", "");
	make_dir("/c/lib/python3.11/site-packages");
	set_variable("CONDA_PREFIX=/c");
	e = scan();
	assert_int_equal(e->kind, PYENV_CONDA);
	assert_int_equal(e->origin, PYENV_CONDA_PREFIX);
	p = pyenv_package(e, "pytorch");
	assert_string_equal(p->version, "2.5.1");
	assert_string_equal(p->build, "py3.11_cuda12.1_cudnn9.1.0_0");
}

static void says_that_there_is_no_python(void **state)
{
	(void)state;
	assert_null(scan());
	assert_string_equal(envs.reason, "no python was found in PATH or in /usr/bin");
	assert_null(envs.libcuda.path);
	assert_int_equal(envs.libcuda.why, LOADER_NOT_FOUND);
}

static void puts_the_user_folder_first_on_debian(void **state)
{
	const struct pyenv *e;
	const struct py_package *p;

	(void)state;
	make_program("/usr/bin/python3.11");
	make_link("/usr/bin/python3", "python3.11");
	make_package("/usr/lib/python3/dist-packages", "torch", "1.13.1", "", "");
	make_package("/home/u/.local/lib/python3.11/site-packages", "torch", "2.6.0", "", "");
	make_dir("/usr/local/lib/python3.11/dist-packages");
	set_variable("PATH=/usr/bin");
	set_variable("HOME=/home/u");
	e = scan();
	assert_int_equal(e->folder[1].kind, PY_FOLDER_USER);
	assert_string_equal(e->folder[2].path, "/usr/local/lib/python3.11/dist-packages");
	p = pyenv_package(e, "torch");
	assert_string_equal(p->version, "2.6.0");
	assert_false(p->hidden);
	assert_string_equal(p[1].version, "1.13.1");
	assert_true(p[1].hidden);
	set_variable("PYTHONNOUSERSITE=1");
	assert_string_equal(pyenv_package(scan(), "torch")->version, "1.13.1");
}

static void reads_folders_of_pth_files(void **state)
{
	const struct pyenv *e;

	(void)state;
	make_venv("include-system-site-packages = true\n");
	make_file(SITE "/__editable__.x.pth", "import os; os.system('no')\n/src/x\nrelative\n/not/there\n");
	make_dir("/src/x");
	make_dir(SITE "/relative");
	make_dir("/opt/py/lib/python3.12/site-packages");
	e = scan();
	assert_int_equal(e->n_folders, 5);
	assert_string_equal(e->folder[2].path, "/src/x");
	assert_string_equal(e->folder[3].path, SITE "/relative");
	assert_int_equal(e->folder[4].kind, PY_FOLDER_BASE);
}

static void reads_versions_and_half_installed_wheels(void **state)
{
	const struct pyenv *e;
	const struct py_package *p;

	(void)state;
	make_venv("");
	make_package(SITE, "nvidia_cublas_cu12", "12.4.5.8", "",
		     "nvidia/cublas/lib/libcublas.so.12,sha256=x,4\nnvidia/cublas/lib/libcublasLt.so.12,sha256=x,5\n"
		     "nvidia/cublas/lib/gone.so.12,sha256=x,5\r\nnvidia/cublas/include/gone.h,,\n\"a,b.so\",,\n");
	make_file(NVIDIA "/cublas/lib/libcublas.so.12", "1234");
	make_file(NVIDIA "/cublas/lib/libcublasLt.so.12", "123");
	make_package(SITE, "nvidia_nccl_cu12", "2.21.5", "", "nvidia/nccl/lib/libnccl.so.2,sha256=x,7\n");
	make_library(NVIDIA "/nccl/lib/libnccl.so.2", "libnccl.so.2");	/* another size, but complete */
	make_file(SITE "/Torch_Vision-0.1-py3.12.egg-info", "Name: x\nVersion: 0.1\n");
	make_dir(SITE "/triton-3.1.0.dist-info");
	make_dir(SITE "/~orch");
	make_package(SITE, "xformers", "0.0.28", "", "");
	make_package(SITE, "xformers", "0.0.29", "", "");
	e = scan();
	p = pyenv_package(e, "nvidia-cublas-cu12");
	assert_string_equal(p->version, "12.4.5.8");
	assert_int_equal(p->n_files, 3);
	assert_int_equal(p->n_missing, 1);
	assert_int_equal(p->n_cut, 1);
	assert_string_equal(p->missing, NVIDIA "/cublas/lib/libcublasLt.so.12");
	assert_int_equal(pyenv_package(e, "nvidia-nccl-cu12")->n_cut, 0);
	assert_string_equal(pyenv_package(e, "torch-vision")->version, "0.1");
	p = pyenv_package(e, "triton");
	assert_string_equal(p->version, "3.1.0");
	assert_non_null(strstr(p->reason, "METADATA"));
	assert_int_equal(p->n_missing, -1);
	assert_int_equal(e->n_leftovers, 1);
	assert_string_equal(e->leftover[0], SITE "/~orch");
	assert_int_equal(e->n_clashes, 1);
	assert_int_equal(e->clash[0].kind, PY_CLASH_TWICE);
	assert_null(pyenv_package(e, "nothing"));
}

static void finds_requirements_that_are_not_met(void **state)
{
	const struct pyenv *e;

	(void)state;
	make_venv("");
	make_package(SITE, "torch", "2.6.0", "Requires-Dist: nvidia-nccl-cu12==2.21.5; platform_system == \"Linux\"\n"
		     "Requires-Dist: cuda-toolkit[cublas,cudart]==13.0.2; platform_system == \"Linux\"\n"
		     "Requires-Dist: triton==3.2.0; platform_system == \"Windows\"\n"
		     "Requires-Dist: nvidia-nvtx>=1; extra == \"more\"\nRequires-Dist: jinja2==99\n", "");
	make_package(SITE, "nvidia_nccl_cu12", "2.21.5", "", "");
	make_package(SITE, "cuda_toolkit", "13.0.2", "Requires-Dist: nvidia-cublas==13.1.0.*; extra == 'cublas'\n"
		     "Requires-Dist: nvidia-cufft==1; extra == 'cufft'\nRequires-Dist: nvidia-cuda-runtime==13.0.*; extra == 'cudart'\n", "");
	make_package(SITE, "nvidia_cublas", "13.2.0.9", "", "");
	make_package(SITE, "torchvision", "0.20.1", "Requires-Dist: torch (==2.5.1)\nRequires-Dist: numpy\n", "");
	e = scan();
	assert_int_equal(e->n_clashes, 3);
	assert_string_equal(e->clash[0].package, "cuda-toolkit");
	assert_string_equal(e->clash[0].requirement, "nvidia-cublas==13.1.0.*");
	assert_string_equal(e->clash[0].installed, "13.2.0.9");
	assert_int_equal(e->clash[1].kind, PY_CLASH_MISSING);
	assert_string_equal(e->clash[1].name, "nvidia-cuda-runtime");
	assert_string_equal(e->clash[2].package, "torchvision");
	assert_string_equal(e->clash[2].requirement, "torch (==2.5.1)");
	assert_string_equal(e->clash[2].installed, "2.6.0");
}

static void reads_how_torch_was_built(void **state)
{
	static const struct { const char *text; enum torch_build build; const char *cuda, *version; } cases[] = {
		{VERSION_CUDA, TORCH_BUILD_CUDA, "12.4", "2.6.0+cu124"},
		{"__version__ = '1.13.1+cu117'\ndebug = False\ncuda = '11.7'\nhip = None\n", TORCH_BUILD_CUDA, "11.7",
		 "1.13.1+cu117"},
		{"__version__ = \"2.6.0+cpu\"\ncuda: Optional[str] = None\nhip = None\n", TORCH_BUILD_CPU, NULL,
		 "2.6.0+cpu"},
		{"__version__ = '2.6.0'\ncuda = None\nhip: Optional[str] = '6.2.4'\n", TORCH_BUILD_ROCM, NULL, "2.6.0"},
		{"cuda_is = 'x'\n# cuda = '1'\n", TORCH_BUILD_UNKNOWN, NULL, NULL},
		{"cuda = '12.4\n", TORCH_BUILD_UNKNOWN, NULL, NULL},
		{"", TORCH_BUILD_UNKNOWN, NULL, NULL},
	};

	(void)state;
	make_venv("");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct py_torch *t;

		make_torch(cases[i].text);
		t = &scan()->torch;
		assert_int_equal(t->build, cases[i].build);
		assert_true(cases[i].build != TORCH_BUILD_UNKNOWN || t->reason);
		assert_true(!cases[i].cuda == !t->cuda && (!t->cuda || strcmp(t->cuda, cases[i].cuda) == 0));
		assert_true(!cases[i].version == !t->version &&
			    (!t->version || strcmp(t->version, cases[i].version) == 0));
		assert_string_equal(t->metadata_version, "2.6.0");
	}
	assert_null(scan()->torch.cuda_library);
}

/* 1.9 to 1.13 were split in two: what is called libtorch_cuda.so there has no code of its own. */
static void finds_the_library_with_the_code(void **state)
{
	(void)state;
	make_venv("");
	make_torch(VERSION_CUDA);
	make_library(SITE "/torch/lib/libtorch_cuda.so", "libtorch_cuda.so");
	assert_string_equal(scan()->torch.cuda_library, SITE "/torch/lib/libtorch_cuda.so");
	make_library(SITE "/torch/lib/libtorch_cuda_cu.so", "libtorch_cuda_cu.so");
	assert_string_equal(scan()->torch.cuda_library, SITE "/torch/lib/libtorch_cuda_cu.so");
}

static void tells_builds_of_torchvision_apart(void **state)
{
	const struct pyenv *e;

	(void)state;
	make_venv("");
	make_torch(VERSION_CUDA);
	make_package(SITE, "torchvision", "0.21.0", "", "");
	make_file(SITE "/torchvision/version.py", "__version__ = '0.21.0+cpu'\n");
	make_package(SITE, "torchaudio", "2.6.0+cu118", "", "");
	e = scan();
	assert_string_equal(pyenv_package(e, "torch")->variant, "cu124");
	assert_string_equal(pyenv_package(e, "torchvision")->variant, "cpu");
	assert_string_equal(pyenv_package(e, "torchaudio")->variant, "cu118");
}

static void notices_what_shadows_torch(void **state)
{
	const struct py_torch *t;

	(void)state;
	make_venv("");
	make_torch(VERSION_CUDA);
	make_dir("/project/torch");			/* without __init__.py it gives way */
	assert_null(scan()->torch.shadow);
	make_file("/project/torch.py", "print('mine')\n");
	t = &scan()->torch;
	assert_string_equal(t->shadow, "/project/torch.py");
	assert_int_equal(t->shadow_kind, PY_FOLDER_CWD);
	assert_string_equal(t->dir, SITE "/torch");
	assert_int_equal(unlink(make_path("/project/torch.py")), 0);
	make_file("/src/pytorch/torch/__init__.py", "");	/* a source checkout */
	set_variable("PYTHONPATH=/src/pytorch");
	t = &scan()->torch;
	assert_string_equal(t->shadow, "/src/pytorch/torch");
	assert_int_equal(t->shadow_kind, PY_FOLDER_PYTHONPATH);
	assert_string_equal(envs.pythonpath, "/src/pytorch");
}

static void says_when_the_files_of_torch_are_gone(void **state)
{
	(void)state;
	make_venv("");
	make_package(SITE, "torch", "2.6.0", "", "");
	assert_null(scan()->torch.dir);
	assert_non_null(strstr(envs.env[0].torch.reason, "gone"));
}

#define FN_NEW	"_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define FN_OLD	"_ZN3c105ErrorC2ENS_14SourceLocationERKSs"
#define FN_AT	"_ZN2at5emptyEv"
#define FN_FUSER	"_ZN5torch3jit5fuser4cuda9remainderEv"
#define FN_OWN	"_ZN5torch3own4thingEv"

static void make_torch_libraries(void)
{
	make_torch(VERSION_CUDA);
	make_elf(SITE "/torch/lib/libc10.so", &(struct elf_spec){.soname = "libc10.so", .defined = {FN_NEW}});
	make_elf(SITE "/torch/lib/libtorch_cpu.so", &(struct elf_spec){.soname = "libtorch_cpu.so", .defined = {FN_AT}});
	make_library(SITE "/torch/lib/libtorch_python.so", "libtorch_python.so");
}

static const struct py_extension *extension(const struct pyenv *e, const char *name)
{
	for (size_t i = 0; i < e->n_extensions; i++)
		if (strstr(e->extension[i].path, name))
			return &e->extension[i];
	return NULL;
}

static void lists_compiled_extensions(void **state)
{
	const struct pyenv *e;
	const struct py_extension *x;

	(void)state;
	make_venv("");
	make_torch_libraries();
	make_package(SITE, "flash_attn", "2.7.0", "", "flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so,,\n");
	make_elf(SITE "/flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so",
		 &(struct elf_spec){.fatbin = true, .needed = {"libc10.so"}, .undefined = {FN_NEW, FN_AT, "printf"}});
	make_elf(SITE "/old/_C.cpython-312-x86_64-linux-gnu.so",
		 &(struct elf_spec){.needed = {"libc10.so"}, .undefined = {FN_OLD, FN_AT}});
	make_elf(SITE "/mine/_C.abi3.so",
		 &(struct elf_spec){.needed = {"libc10.so", "libmine.so"}, .undefined = {FN_OWN}});
	make_elf(SITE "/mine/libmine.so", &(struct elf_spec){.soname = "libmine.so", .defined = {FN_OWN}});
	/* torch 2.0 has libraries with other names next to its own */
	make_elf(SITE "/nvfuser/_C.so",
		 &(struct elf_spec){.needed = {"libc10.so", "libnvfuser_codegen.so", "libnvToolsExt.so.1"},
				    .undefined = {FN_FUSER}});
	make_elf(SITE "/torch/lib/libnvfuser_codegen.so",
		 &(struct elf_spec){.soname = "libnvfuser_codegen.so", .defined = {FN_FUSER}});
	make_elf(SITE "/nvlost/_C.so",
		 &(struct elf_spec){.needed = {"libc10.so", "libnvlost.so"}, .undefined = {FN_OWN}});
	make_elf(SITE "/lost/_C.so", &(struct elf_spec){.needed = {"libc10.so", "libnowhere.so"}, .undefined = {FN_OWN}});
	make_elf(SITE "/tag/_C.cpython-310-x86_64-linux-gnu.so",
		 &(struct elf_spec){.needed = {"libtorch.so"}, .undefined = {FN_OLD}});
	make_library(SITE "/numpy/plain.so", "plain.so");
	make_elf(SITE "/bitsandbytes/libbitsandbytes_cuda124.so", &(struct elf_spec){.fatbin = true});
	make_elf(SITE "/bitsandbytes/libbitsandbytes_cuda117.so", &(struct elf_spec){.fatbin = true});	/* torch has 12.4 */
	make_file(SITE "/zero/libzero.so.1", "");
	make_file(SITE "/script/libscript.so", "GROUP ( libreal.so )");
	make_dir(SITE "/folder/libfolder.so");
	e = scan();
	assert_int_equal(e->n_extensions, 9);
	assert_non_null(extension(e, "_cuda124.so"));
	x = extension(e, "flash_attn");
	assert_true(x->fatbin && x->torch && !x->vendor && !x->python && !x->reason);
	assert_string_equal(x->package, "flash-attn");
	assert_string_equal(x->version, "2.7.0");
	assert_int_equal(x->cxx11_abi, 1);
	assert_int_equal(x->n_unresolved, 0);
	x = extension(e, "/old/");
	assert_int_equal(x->cxx11_abi, 0);
	assert_int_equal(x->n_unresolved, 1);
	assert_string_equal(x->unresolved, FN_OLD);
	assert_string_equal(x->package, "old");
	assert_int_equal(extension(e, "/mine/_C")->n_unresolved, 0);
	assert_int_equal(extension(e, "/lost/")->n_unresolved, -1);
	assert_int_equal(extension(e, "/nvfuser/_C")->n_unresolved, 0);
	assert_int_equal(extension(e, "/nvlost/")->n_unresolved, -1);
	assert_string_equal(extension(e, "/tag/")->python, "cpython-310");
	assert_int_equal(extension(e, "/tag/")->n_unresolved, -1);
	assert_string_equal(extension(e, "/zero/")->reason, "empty file");
	assert_int_equal(e->torch.cxx11_abi, 1);
}

/* A RECORD without a library saves walking thousands of folders; folders that belong to no package are searched. */
static void leaves_out_packages_of_text(void **state)
{
	const struct pyenv *e;

	(void)state;
	make_venv("");
	make_package(SITE, "text", "1.0", "", "text/__init__.py,,\ntext/deep/x.py,,\nshared/a.py,,\n");
	make_package(SITE, "code", "1.0", "", "shared/b.so,,\n");
	make_elf(SITE "/text/deep/late.so", &(struct elf_spec){.fatbin = true});
	make_elf(SITE "/shared/b.so", &(struct elf_spec){.fatbin = true});
	make_elf(SITE "/nobody/deep/c.so", &(struct elf_spec){.fatbin = true});
	make_file(SITE "/here.pth", "/src/mine\n");
	make_elf("/src/mine/pkg/d.so", &(struct elf_spec){.fatbin = true});
	make_elf("/src/mine/far/down/in/it/e.so", &(struct elf_spec){.fatbin = true});
	e = scan();
	assert_int_equal(e->n_extensions, 3);
	assert_string_equal(extension(e, "/shared/b.so")->package, "code");
	assert_non_null(extension(e, "/nobody/"));
	assert_non_null(extension(e, "/src/mine/pkg/d.so"));
}

static void lists_extensions_that_torch_compiled_itself(void **state)
{
	const struct py_extension *x;

	(void)state;
	make_venv("");
	set_variable("HOME=/home/u");
	make_elf("/home/u/.cache/torch_extensions/py312_cu124/mine/mine.so", &(struct elf_spec){.needed = {"libc10.so"}});
	make_elf("/home/u/.cache/torch_extensions/py39_cu124/mine/mine.so", &(struct elf_spec){.needed = {"libc10.so"}});
	x = extension(scan(), "py312_cu124");
	assert_non_null(x);
	assert_string_equal(x->package, "torch-extensions-cache");
	assert_int_equal(envs.env[0].n_extensions, 1);
}

#define INIT_NEW \
	"def _preload_cuda_deps(err=None):\n    cuda_libs: list[tuple[str, str]] = [\n        # NOTE: a comment\n" \
	"        (\"cudnn\", \"libcudnn.so.*[0-9]\"),\n        (\"cublas\", \"libcublas.so.*[0-9]\"),\n    ]\n    for a, b in cuda_libs:\n" \
	"        _preload_cuda_lib(a, b)\n\n\ndef _load_global_deps() -> None:\n    try:\n        ctypes.CDLL(deps)\n        try:\n" \
	"            with open(\"/proc/self/maps\") as f:\n                _maps = f.read()\n" \
	"            if \"libcudart.so\" not in _maps:\n                return\n            _preload_cuda_deps()\n" \
	"        except Exception:\n            pass\n    except OSError as err:\n        _preload_cuda_deps(err)\n\n\nx = \"other\"\n"

#define INIT_26 \
	"def _load_global_deps() -> None:\n    try:\n        ctypes.CDLL(deps)\n        try:\n" \
	"            with open(\"/proc/self/maps\") as f:\n                _maps = f.read()\n" \
	"            # _preload_cuda_deps(\"commented\", \"libout.so\")\n" \
	"            if \"nvidia/cuda_runtime/lib/libcudart.so\" not in _maps:\n                return\n" \
	"            _preload_cuda_deps(\"cuda_nvrtc\", \"libnvrtc.so.*[0-9]\")\n" \
	"            _preload_cuda_deps(\"nvjitlink\", \"libnvJitLink.so.*[0-9]\")\n        except Exception:\n            pass\n" \
	"    except OSError as err:\n        cuda_libs: Dict[str, str] = {\n            \"cublas\": \"libcublas.so.*[0-9]\",\n" \
	"            \"cudnn\": \"libcudnn.so.*[0-9]\",\n        }\n        for lib_folder, lib_name in cuda_libs.items():\n" \
	"            _preload_cuda_deps(lib_folder, lib_name)\n"

#define INIT_113 \
	"def _preload_cuda_deps():\n    for path in sys.path:\n        cublas_path = os.path.join(nvidia_path, 'cublas', 'lib', 'libcublas.so.11')\n" \
	"        cudnn_path = os.path.join(nvidia_path, 'cudnn', 'lib', 'libcudnn.so.8')\n    ctypes.CDLL(cublas_path)\n\n" \
	"def _load_global_deps():\n    try:\n        ctypes.CDLL(lib_path)\n    except OSError as err:\n" \
	"        if 'libcublas.so.11' not in err.args[0]:\n            raise err\n        _preload_cuda_deps()\n"

static void reads_what_torch_opens_itself(void **state)
{
	struct torch_preloads p;

	(void)state;
	torch_preloads_read(&envs.pool, INIT_NEW, &p);
	assert_int_equal(p.n_always, 2);
	assert_string_equal(p.always[0].folder, "cudnn");
	assert_string_equal(p.when, "libcudart.so");
	torch_preloads_read(&envs.pool, INIT_26, &p);
	assert_int_equal(p.n_always, 2);
	assert_string_equal(p.always[1].folder, "nvjitlink");
	assert_string_equal(p.always[1].pattern, "libnvJitLink.so.*[0-9]");
	assert_string_equal(p.when, "nvidia/cuda_runtime/lib/libcudart.so");
	assert_int_equal(p.n_rescue, 2);
	assert_string_equal(p.rescue[0].pattern, "libcublas.so.*[0-9]");
	torch_preloads_read(&envs.pool, INIT_113, &p);
	assert_int_equal(p.n_always, 0);
	assert_int_equal(p.n_rescue, 2);
	assert_string_equal(p.rescue[1].folder, "cudnn");
	assert_string_equal(p.rescue[1].pattern, "libcudnn.so.8");
	torch_preloads_read(&envs.pool, "def _load_global_deps(", &p);
	assert_int_equal(p.n_always + p.n_rescue, 0);
	torch_preloads_read(&envs.pool, "", &p);
	assert_false(p.known);
}

static void make_cuda_torch(const char *init)
{
	make_venv("");
	make_torch_libraries();
	make_file(SITE "/torch/__init__.py", init);
	make_elf(SITE "/torch/lib/libtorch_global_deps.so",
		 &(struct elf_spec){.soname = "libtorch_global_deps.so",
				    .rpath = "$ORIGIN/../../nvidia/cuda_runtime/lib",
				    .needed = {"libcudart.so.12"}});
	make_elf(SITE "/torch/_C.cpython-312-x86_64-linux-gnu.so",
		 &(struct elf_spec){.rpath = "$ORIGIN/lib", .needed = {"libtorch_cuda.so"}});
	make_elf(SITE "/torch/lib/libtorch_cuda.so",
		 &(struct elf_spec){.soname = "libtorch_cuda.so",
				    .rpath = "$ORIGIN:$ORIGIN/../../nvidia/cublas/lib:$ORIGIN/../../nvidia/cudnn/lib",
				    .needed = {"libcublas.so.12", "libcudnn.so.9", "libcudart.so.12"}});
	make_library(NVIDIA "/cuda_runtime/lib/libcudart.so.12", "libcudart.so.12");
	make_elf(NVIDIA "/cublas/lib/libcublas.so.12",
		 &(struct elf_spec){.soname = "libcublas.so.12", .runpath = "$ORIGIN", .needed = {"libcublasLt.so.12"}});
	make_library(NVIDIA "/cublas/lib/libcublasLt.so.12", "libcublasLt.so.12");
	make_elf(NVIDIA "/cudnn/lib/libcudnn.so.9", &(struct elf_spec){.soname = "libcudnn.so.9", .runpath = "$ORIGIN"});
	make_library(NVIDIA "/cudnn/lib/libcudnn_graph.so.9", "libcudnn_graph.so.9");
	make_package(SITE, "nvidia_cublas_cu12", "12.4.5.8", "", "nvidia/cublas/lib/libcublasLt.so.12,,\n");
}

static const struct loader_file *file(const char *soname)
{
	const struct loader_result *r = &envs.env[0].loader;

	for (size_t i = 0; i < r->n_files; i++)
		if (strcmp(r->file[i].soname, soname) == 0)
			return &r->file[i];
	return NULL;
}

static void loads_the_libraries_of_the_wheels(void **state)
{
	(void)state;
	make_cuda_torch(INIT_NEW);
	scan();
	assert_true(envs.env[0].loader.known && envs.env[0].loader.preloads);
	assert_int_equal(envs.env[0].loader.n_other, 0);
	assert_int_equal(envs.env[0].loader.n_not_found, 0);
	assert_int_equal(file("libcudart.so.12")->same, LOADER_SAME_FILE);
	assert_int_equal(file("libcudnn.so.9")->why, LOADER_CTYPES);
	assert_string_equal(file("libcublasLt.so.12")->version, "12.4.5.8");
	assert_true(file("libcudnn_graph.so.9")->late);
	assert_int_equal(file("libcudnn_graph.so.9")->why, LOADER_RUNPATH);
}

static void finds_foreign_libraries_in_library_path(void **state)
{
	const struct loader_file *f;

	(void)state;
	make_cuda_torch(INIT_113);
	make_elf("/usr/local/cuda/lib64/libcublasLt.so.12.1.3.1",
		 &(struct elf_spec){.soname = "libcublasLt.so.12", .defined = {"other"}});
	make_link("/usr/local/cuda/lib64/libcublasLt.so.12", "libcublasLt.so.12.1.3.1");
	make_elf("/usr/local/cuda/lib64/libcudart.so.12",
		 &(struct elf_spec){.soname = "libcudart.so.12", .defined = {"other"}});
	make_elf("/usr/local/cuda/lib64/libcudnn_graph.so.9",
		 &(struct elf_spec){.soname = "libcudnn_graph.so.9", .defined = {"o"}});
	set_variable("LD_LIBRARY_PATH=/usr/local/cuda/lib64");
	scan();
	assert_int_equal(envs.env[0].loader.n_other, 2);
	f = file("libcublasLt.so.12");
	assert_int_equal(f->same, LOADER_SAME_NOT);
	assert_int_equal(f->why, LOADER_LIBRARY_PATH);
	assert_string_equal(f->because, "/usr/local/cuda/lib64");
	assert_string_equal(f->version, "12.1.3.1");
	assert_string_equal(f->wheel_version, "12.4.5.8");
	assert_string_equal(f->wheel, NVIDIA "/cublas/lib/libcublasLt.so.12");
	assert_int_equal(file("libcudart.so.12")->same, LOADER_SAME_FILE);	/* found by DT_RPATH, which comes first */
	assert_int_equal(file("libcudnn_graph.so.9")->same, LOADER_SAME_NOT);
	/* a torch that opens cuBLAS' helper by itself, as newer ones do, is safe from that */
	make_file(SITE "/torch/__init__.py", "def _load_global_deps():\n        open(\"/proc/self/maps\")\n"
		  "        _preload_cuda_lib(\"cublas\", \"libcublasLt.so.*[0-9]\")\n    except OSError as err:\n");
	scan();
	assert_int_equal(file("libcublasLt.so.12")->same, LOADER_SAME_FILE);
	assert_int_equal(file("libcublasLt.so.12")->why, LOADER_CTYPES);
}

/* torch 2.6 opens nvJitLink itself only if the runtime is from its wheel. */
static void preloads_only_beside_the_wheels_runtime(void **state)
{
	(void)state;
	make_cuda_torch(INIT_26);
	make_library(NVIDIA "/cuda_nvrtc/lib/libnvrtc.so.12", "libnvrtc.so.12");
	scan();
	assert_true(envs.env[0].loader.preloads);
	assert_int_equal(file("libnvrtc.so.12")->why, LOADER_CTYPES);
	make_elf("/usr/lib64/libcudart.so.12", &(struct elf_spec){.soname = "libcudart.so.12", .defined = {"system"}});
	assert_int_equal(unlink(make_path(NVIDIA "/cuda_runtime/lib/libcudart.so.12")), 0);
	scan();
	assert_false(envs.env[0].loader.preloads);
	assert_null(file("libnvrtc.so.12"));
	assert_string_equal(file("libcudart.so.12")->path, "/usr/lib64/libcudart.so.12");
	assert_int_equal(file("libcudart.so.12")->same, LOADER_SAME_UNKNOWN);	/* the wheels have none */
}

static void says_which_library_is_not_found(void **state)
{
	const struct loader_file *f;

	(void)state;
	make_cuda_torch(INIT_NEW);
	assert_int_equal(unlink(make_path(NVIDIA "/cublas/lib/libcublasLt.so.12")), 0);
	scan();
	assert_int_equal(envs.env[0].loader.n_not_found, 1);
	f = file("libcublasLt.so.12");
	assert_null(f->path);
	assert_string_equal(f->needed_by, NVIDIA "/cublas/lib/libcublas.so.12");
}

/* torch.libs separate from nvidia's: an installer put them into different folders, and torch finds them itself. */
static void follows_the_rescue_of_torch(void **state)
{
	(void)state;
	make_cuda_torch(
		"def _load_global_deps():\n    try:\n        pass\n    except OSError as err:\n        cuda_libs = {\n"
		"            \"cuda_runtime\": \"libcudart.so.*[0-9]\",\n        }\n");
	set_variable("PYTHONPATH=/apart");
	make_dir("/apart/nvidia/cuda_runtime/lib");
	assert_int_equal(rename(make_path(NVIDIA "/cuda_runtime/lib/libcudart.so.12"),
				make_path("/apart/nvidia/cuda_runtime/lib/libcudart.so.12")), 0);
	scan();
	assert_int_equal(envs.env[0].loader.n_not_found, 0);
	assert_int_equal(file("libcudart.so.12")->why, LOADER_CTYPES);
	assert_string_equal(file("libcudart.so.12")->path, "/apart/nvidia/cuda_runtime/lib/libcudart.so.12");
}

static void finds_the_driver_and_what_hides_it(void **state)
{
	const struct loader_driver *d = &envs.libcuda;

	(void)state;
	make_library("/usr/lib64/libcuda.so.535.54.03", "libcuda.so.1");
	make_link("/usr/lib64/libcuda.so.1", "libcuda.so.535.54.03");
	scan();
	assert_string_equal(d->version, "535.54.03");
	assert_int_equal(d->why, LOADER_DEFAULT);
	assert_false(d->compat || d->stub || d->wsl);
	assert_null(d->other);
	make_cuda_torch(INIT_NEW);
	make_library("/usr/local/cuda-12.8/compat/libcuda.so.570.26", "libcuda.so.1");
	make_link("/usr/local/cuda-12.8/compat/libcuda.so.1", "libcuda.so.570.26");
	set_variable("LD_LIBRARY_PATH=/usr/local/cuda-12.8/compat");
	scan();
	assert_true(d->compat);
	assert_string_equal(d->version, "570.26");
	assert_string_equal(d->other, "/usr/lib64/libcuda.so.1");
	assert_string_equal(d->other_version, "535.54.03");
	variables[0] = "LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs";
	make_library("/usr/local/cuda/lib64/stubs/libcuda.so.1", "libcuda.so.1");
	scan();
	assert_true(d->stub);
	assert_null(d->version);
	make_file("/usr/local/cuda/lib64/stubs/libcuda.so.1", "");
	scan();
	assert_string_equal(d->broken, "empty file");
}

static void reads_what_a_process_has_loaded(void **state)
{
	static const char environ_bytes[] = "A=1\0LD_LIBRARY_PATH=/x\0junk\0B=2";
	struct py_process p;

	(void)state;
	make_file("/proc/42/maps",
		  "5500-5600 r-xp 00000000 08:01 11    /usr/bin/python3.11\n"
		  "7f00-7f10 r--p 00000000 08:01 12    /usr/lib/libcuda.so.535.54.03 (deleted)\n"
		  "7f10-7f20 r-xp 00010000 08:01 12    /usr/lib/libcuda.so.535.54.03 (deleted)\n"
		  "7f20-7f30 r-xp 00000000 08:01 13    /v/with space/libtorch_cuda.so\n"
		  "7f30-7f40 r-xp 00000000 08:01 13    /v/with space/libtorch_cuda.so\n"
		  "7f40-7f50 rw-s 00000000 00:06 14    /dev/nvidiactl\n"
		  "7f50-7f60 r-xp 00000000 00:00 0     [vdso]\nnonsense\n/x\n7f60-7f70 r-xp");
	make_bytes("/proc/42/environ", environ_bytes, sizeof(environ_bytes) - 1);
	py_process_read(&p, make_root, 42);
	assert_true(p.known);
	assert_int_equal(p.n_libraries, 3);
	assert_string_equal(p.library[1].name, "libcuda.so.535.54.03");
	assert_string_equal(p.library[1].version, "535.54.03");
	assert_true(p.library[1].deleted && p.library[1].cuda);
	assert_string_equal(p.library[2].path, "/v/with space/libtorch_cuda.so");
	assert_int_equal(p.n_environ, 3);
	assert_string_equal(p.environ[1], "LD_LIBRARY_PATH=/x");
	assert_null(p.environ[3]);
	py_process_release(&p);
	py_process_read(&p, make_root, 43);
	assert_false(p.known);
	assert_string_equal(p.reason, "no such process");
	py_process_release(&p);
}

static void reads_this_very_process(void **state)
{
	struct py_process p;
	bool libc = false;

	(void)state;
	py_process_read(&p, "", getpid());
	assert_true(p.known && p.exe && p.cwd && p.environ);
	for (size_t i = 0; i < p.n_libraries; i++)
		libc |= str_starts(p.library[i].name, "libc.so") || str_starts(p.library[i].name, "libc-");	/* before 2.34 */
	assert_true(libc);
	py_process_release(&p);
}

static void orders_versions(void **state)
{
	static const char *const order[] = {"1.0.dev1",	 "1.0a1",     "1.0b2", "1.0rc1", "1.0",
					    "1.0+cu118", "1.0.post1", "1.0.1", "1.10",	 "2.0.0.dev20240101+cu121",
					    "2.0",	 "2025.1",    "1!0.1"};

	(void)state;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++) {
			int c = py_version_cmp(order[i], order[k]);

			assert_true(i == k ? c == 0 : i < k ? c < 0 : c > 0);
		}
	assert_int_equal(py_version_cmp("1.0", "1.0.0"), 0);
}

static void checks_specifiers(void **state)
{
	static const struct { const char *version, *spec; int fits; } cases[] = {
		{"2.5.1+cu124", "==2.5.1", 1}, {"2.5.1+cu124", "==2.5.1+cu121", 0}, {"2.5.1", "==2.5.1+cu121", 0},
		{"2.6.0", "(==2.5.1)", 0},
		{"13.1.0.3", "==13.1.0.*", 1},
		{"13.10.0.3", "==13.1.*", 0},
		{"13.5.0", "<14,>=13.0.3", 1},
		{"14.0rc1", "<14", 0}, {"2.6.0.dev20250101", "<2.6", 0}, {"2.2.9", "~=2.2.1", 1}, {"2.3.0", "~=2.2.1", 0},
		{"2.3.0", "~= 2.2", 1}, {"2.3.0", "!=2.3.*", 0}, {"2.3.0", "", 1}, {"2.3.0", ">=", -1}, {"2.3.0", "???", -1},
		{"banana", "==1", -1}, {"2.0", "===2.0", 1}, {"2.0", "~=2", -1}, {"2.0.post1", ">2.0", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (py_version_fits(cases[i].version, cases[i].spec) != cases[i].fits)
			fail_msg("%s %s", cases[i].version, cases[i].spec);
}

static void judges_markers(void **state)
{
	static const struct { const char *marker; int is; } cases[] = {
		{"", 1}, {" platform_system == \"Linux\"", 1}, {"platform_system == 'Windows'", 0},
		{"platform_system == 'Linux' and platform_machine == 'x86_64'", 1},
		{"(sys_platform == 'win32' or os_name == 'posix') and extra == 'cublas'", 1},
		{"extra == 'Other_One'", 0},
		{"python_version < '3.13'", 1}, {"python_version >= \"3.13\"", 0}, {"'3.10' <= python_version", -1},
		{"platform_machine in 'x86_64 aarch64'", 1},
		{"platform_machine not in 'x86_64'", 0},
		{"platform_release == '5'", -1},
		{"platform_release == '5' and extra == 'no'", 0}, {"platform_system ==", -1}, {"((((((((((((((((((((", -1},
		{"platform_system == \"Linux", -1}, {"extra == 'a-b'", 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (py_marker_true(cases[i].marker, "x86_64", 12, "cublas,a-b") != cases[i].is)
			fail_msg("%s", cases[i].marker);
}

static void survives_hostile_trees(void **state)
{
	char *junk = malloc(1 << 20);

	(void)state;
	make_venv("");
	make_link(SITE "/loop", ".");
	make_link(SITE "/round.so", "round.so");
	make_link(SITE "/out", "../../../../../../../../../../etc");
	make_dir(SITE "/torch-1.dist-info");
	assert_int_equal(mkfifo(make_path(SITE "/torch-1.dist-info/METADATA"), 0644), 0);
	assert_int_equal(mkfifo(make_path(SITE "/pipe.so"), 0644), 0);
	make_dir(SITE "/torch/version.py");
	make_dir(SITE "/torch/lib");
	make_file(SITE "/torch/__init__.py", "");
	make_file(SITE "/-1.dist-info", "");
	make_file(SITE "/.dist-info", "");
	memset(junk, 'x', 1 << 20);
	make_bytes(SITE "/triton-9.dist-info/METADATA", junk, 1 << 20);
	make_bytes(SITE "/triton-9.dist-info/RECORD", junk, 1 << 20);
	for (size_t i = 0; i < 1 << 20; i++)
		junk[i] = (char)(i * 2654435761u >> 13);
	make_bytes(SITE "/a.so", junk, 5000);
	memcpy(junk, "\177ELF\2\1\1", 8);
	make_bytes(SITE "/b.so", junk, 5000);
	make_bytes(SITE "/x.pth", junk, 5000);
	make_bytes("/etc/ld.so.cache", junk, 5000);
	make_file("/v/pyvenv.cfg", "home=\nversion = 99999999999999999999.5\ninclude-system-site-packages");
	free(junk);
	scan();
	assert_int_equal(envs.n_envs, 1);
	assert_non_null(pyenv_package(&envs.env[0], "torch")->reason);
	assert_null(pyenv_package(&envs.env[0], "triton")->missing);
}

/* Every byte of a library may be wrong; reading it never goes out of bounds. */
static void survives_flipped_bytes_in_libraries(void **state)
{
	struct buf b;

	(void)state;
	make_venv("");
	make_torch_libraries();
	make_elf(SITE "/x/_C.so",
		 &(struct elf_spec){.fatbin = true, .needed = {"libc10.so"}, .undefined = {FN_NEW, FN_AT}});
	buf_init(&b, 1 << 20);
	assert_int_equal(fs_read(make_path(SITE "/x/_C.so"), &b, NULL), 0);
	for (size_t i = 4; i < b.len; i += 3) {
		b.data[i] = (char)~b.data[i];
		make_bytes(SITE "/x/_C.so", b.data, b.len);
		make_bytes(SITE "/torch/lib/libc10.so", b.data, b.len);
		scan();
		b.data[i] = (char)~b.data[i];
	}
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(finds_the_python_of_path), T(believes_path_before_virtual_env), T(prefers_python3_to_an_old_python),
		T(follows_shims_of_pyenv),
		T(says_when_a_venv_is_broken), T(takes_what_was_asked_for), T(reads_conda), T(says_that_there_is_no_python),
		T(puts_the_user_folder_first_on_debian),
		T(reads_folders_of_pth_files),
		T(reads_versions_and_half_installed_wheels),
		T(finds_requirements_that_are_not_met), T(reads_how_torch_was_built), T(finds_the_library_with_the_code),
		T(tells_builds_of_torchvision_apart),
		T(notices_what_shadows_torch), T(says_when_the_files_of_torch_are_gone), T(lists_compiled_extensions),
		T(leaves_out_packages_of_text),
		T(lists_extensions_that_torch_compiled_itself),
		T(reads_what_torch_opens_itself),
		T(loads_the_libraries_of_the_wheels),
		T(finds_foreign_libraries_in_library_path),
		T(preloads_only_beside_the_wheels_runtime),
		T(says_which_library_is_not_found),
		T(follows_the_rescue_of_torch),
		T(finds_the_driver_and_what_hides_it), T(reads_what_a_process_has_loaded), T(reads_this_very_process),
		T(orders_versions), T(checks_specifiers), T(judges_markers), T(survives_hostile_trees),
		T(survives_flipped_bytes_in_libraries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
