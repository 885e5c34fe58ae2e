#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the stand-ins have every function of NVIDIA's libraries that returns a status.

A program whose library lacks one function does not start, whether it calls that function or not. So a stand-in has all names that the
library of its version exports and whose headers say that they return a status; those that are not modeled fail as not supported
(src/sim/<library>/others.def, which --write makes anew). Downloads 3.5 GB, so only `make check-standin-exports` runs it.
"""
import argparse
import collections
import glob
import os
import re
import subprocess
import sys
import zipfile

import elf_names

# folder of the stand-in: library, type of its status, packages with the library of each SONAME
Library = collections.namedtuple("Library", "name status packages")
LIBRARIES = {
	"cublas": Library("libcublas.so", "cublasStatus_t", ("nvidia-cublas-cu12==12.9.*", "nvidia-cublas==13.*")),
	"cublaslt": Library("libcublasLt.so", "cublasStatus_t", ("nvidia-cublas-cu12==12.9.*", "nvidia-cublas==13.*")),
	"cudart": Library("libcudart.so", "cudaError_t", ("nvidia-cuda-runtime-cu12==12.9.*", "nvidia-cuda-runtime==13.*")),
	"cudnn": Library("libcudnn.so", "cudnnStatus_t", ("nvidia-cudnn-cu13==9.*",)),
	"cufft": Library("libcufft.so", "cufftResult", ("nvidia-cufft-cu12==11.*", "nvidia-cufft==12.*")),
	"cupti": Library("libcupti.so", "CUptiResult", ("nvidia-cuda-cupti-cu12==12.9.*", "nvidia-cuda-cupti==13.*")),
	"curand": Library("libcurand.so", "curandStatus_t", ("nvidia-curand==10.*",)),
	"cusolver": Library("libcusolver.so", "cusolverStatus_t", ("nvidia-cusolver-cu12==11.*", "nvidia-cusolver==12.*")),
	"cusparse": Library("libcusparse.so", "cusparseStatus_t", ("nvidia-cusparse==12.*",)),
	"cusparselt": Library("libcusparseLt.so", "cusparseStatus_t", ("nvidia-cusparselt-cu13==0.*",)),
	"nccl": Library("libnccl.so", "ncclResult_t", ("nvidia-nccl-cu13==2.*",)),
	"nvrtc": Library("libnvrtc.so", "nvrtcResult", ("nvidia-cuda-nvrtc-cu12==12.9.*", "nvidia-cuda-nvrtc==13.*")),
}
HEAD = """/* SPDX-License-Identifier: Apache-2.0
 * Functions that are there so that programs can be loaded, and fail as not supported; they say so once.
 * Made by `tests/wheels/standin_exports.py --write`.
 */
"""


def download(package, cache):
	"""The package's wheel; kept, as it is a few hundred megabytes."""
	folder = os.path.join(cache, re.sub(r"\W+", "-", package).strip("-"))
	if not glob.glob(os.path.join(folder, "*.whl")):
		print("downloading " + package, file=sys.stderr, flush=True)
		subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q", "--no-deps", "--only-binary=:all:",
				"-d", folder, package], check=True)
	return glob.glob(os.path.join(folder, "*.whl"))[0]


def plain(header):
	header = re.sub(r"/\*.*?\*/|//[^\n]*", "", header, flags=re.S)
	return re.sub(r"^\s*#(?:[^\n\\]|\\.)*", "", header, flags=re.M | re.S)


def returning(status, headers):
	"""Names that are declared as functions that return this type."""
	return set(re.findall(r"\b%s\s+(?:[A-Z_]+\s+)*(\w+)\s*\(" % status, headers))


def read(wheel, library):
	"""(SONAME, names that it exports, text of the headers)"""
	with zipfile.ZipFile(wheel) as z:
		file = next(n for n in z.namelist() if os.path.basename(n).startswith(library + "."))
		headers = "\n".join(plain(z.read(n).decode("latin-1")) for n in z.namelist() if n.endswith(".h"))
		return os.path.basename(file), set(elf_names.read(z.read(file))[0]), headers


def wanted(folder, cache):
	"""{SONAME: names} of the functions that return a status, with the forms for streams of a thread."""
	library, found = LIBRARIES[folder], {}
	for package in library.packages:
		soname, exported, headers = read(download(package, cache), library.name)
		known = returning(library.status, headers)
		found[soname] = {n for n in exported if re.sub(r"_pt[sd][sz]?$", "", n) in known}
	return found


def number(soname):
	return int(soname.split(".so.")[1].split(".")[0])


def write(path, names):
	"""names: {SONAME: those that the stand-in lacks}"""
	common = set.intersection(*names.values())
	with open(path, "w", encoding="ascii") as out:
		out.write(HEAD + "".join("STANDIN_OTHER(%s)\n" % n for n in sorted(common)))
		for soname in sorted(names, key=number):
			if names[soname] - common:
				out.write("#if SONAME_MAJOR == %d\n" % number(soname) + "".join(
					"STANDIN_OTHER(%s)\n" % n for n in sorted(names[soname] - common)) + "#endif\n")


def others(path):
	"""Names in a file that `write` has made."""
	return set(re.findall(r"\((\w+)\)", open(path, encoding="ascii").read())) if os.path.exists(path) else set()


def main():
	parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
	parser.add_argument("--build", default="build", help="folder that make has filled")
	parser.add_argument("--cache", default="build/wheels", help="where packages are kept (default: %(default)s)")
	parser.add_argument("--write", action="store_true", help="write what is missing to others.def; then make, and check")
	parser.add_argument("folder", nargs="*", help="stand-ins: cublas, say; all when none is given")
	args = parser.parse_args()
	bad = 0
	for folder in args.folder or sorted(LIBRARIES):
		missing, path = {}, os.path.join("src", "sim", folder, "others.def")
		for soname, names in wanted(folder, args.cache).items():
			ours = set(elf_names.read_file(os.path.join(args.build, "sim", soname))[0])
			missing[soname] = names - ours | names & others(path) if args.write else names - ours
			print("%s: %d functions return a status, %d missing%s" % (soname, len(names), len(names - ours), ": " + " ".join(
				sorted(names - ours)[:8]) if names - ours else ""), flush=True)
			bad += bool(names - ours)
		if args.write:
			write(path, missing)
	sys.exit(1 if bad and not args.write else 0)


if __name__ == "__main__":
	main()
