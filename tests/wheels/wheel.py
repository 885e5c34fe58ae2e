# SPDX-License-Identifier: Apache-2.0
"""Downloads wheels with pip, as configured here, and keeps the symbol names of their libraries.

A CUDA wheel of PyTorch is close to a gigabyte and the index is pip's business (mirrors, passwords, proxies), so pip
downloads one wheel at a time into a scratch folder, and it is removed as soon as its symbols have been read.
"""
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import elf_names

PLATFORMS = ("manylinux1_x86_64", "manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64",
	     "linux_x86_64")
LIBRARIES = ("libc10.so", "libc10_cuda.so", "libtorch_cpu.so", "libtorch_python.so")


class Trouble(Exception):
	pass


def pip(words, python):
	"""pip's output; Trouble with its last line when it fails."""
	words = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words, "--only-binary=:all:",
		 "--implementation", "cp", "--python-version", python]
	for p in PLATFORMS:
		words += ["--platform", p]
	done = subprocess.run(words, capture_output=True, text=True)
	if done.returncode:
		errors = [l for l in done.stderr.splitlines() if l.startswith("ERROR")]
		raise Trouble(errors[-1] if errors else done.stderr.strip()[-200:] or "pip failed")
	return done.stdout


def releases(pythons, since=(2, 0)):
	"""{"2.4": ("2.4.1", "3.11"), ...}: the newest of each release, and the first Python that has it."""
	found, trouble = {}, None
	for python in pythons:
		try:
			text = pip(["index", "versions", "torch"], python)
		except Trouble as e:
			trouble = e
			continue
		line = re.search(r"Available versions: (.*)", text)
		for v in re.findall(r"\d+(?:\.\d+)+", line.group(1) if line else ""):
			minor = ".".join(v.split(".")[:2])
			if numbers(minor) >= since and numbers(v) > numbers(found.get(minor, ("0",))[0]):
				found[minor] = (v, python)
	if not found:
		raise Trouble("pip finds no release of torch: %s" % trouble)
	return found


def numbers(version):
	return tuple(int(n) for n in re.findall(r"\d+", version))


def download(what, python, folder):
	pip(["download", "-q", "--no-cache-dir", "--no-deps", "-d", folder, what], python)
	names = [n for n in os.listdir(folder) if n.endswith(".whl")]
	if len(names) != 1:
		raise Trouble("pip left %d wheels of %s" % (len(names), what))
	return os.path.join(folder, names[0])


def needs(z):
	"""Requirements in a wheel's metadata: (name, version, the rest)."""
	meta = next(n for n in z.namelist() if n.endswith(".dist-info/METADATA"))
	for line in z.read(meta).decode().splitlines():
		m = re.match(r"Requires-Dist: ([\w.-]+)(?:\[[\w,-]*\])?\s*\(?==\s*([\w.*]+)\)?(.*)", line)
		if m:
			yield m.groups()


def runtime_of(requirements, python, scratch):
	"""The package with libcudart that these requirements name: directly, or through NVIDIA's toolkit."""
	requirements = list(requirements)
	for name, version, _ in requirements:
		if name.startswith("nvidia-cuda-runtime"):
			return "%s==%s" % (name, version)
	for name, version, _ in requirements:
		if name == "cuda-toolkit":
			with tempfile.TemporaryDirectory(dir=scratch) as d, \
			     zipfile.ZipFile(download("%s==%s" % (name, version), python, d)) as z:
				return runtime_of(needs(z), python, scratch)
	return None


def library_names(z, member, scratch):
	with tempfile.NamedTemporaryFile(dir=scratch) as f:
		with z.open(member) as packed:
			shutil.copyfileobj(packed, f, 1 << 20)
		f.flush()
		defined, used = elf_names.read_file(f.name)
	return {"defined": sorted(defined), "used": sorted(used)}


def runtime_names(z, torch, python, scratch):
	"""(its package, names); a wheel may have libcudart inside."""
	inside = [n for n in z.namelist() if re.search(r"/libcudart[-.\w]*\.so[.\d]*$", n)]
	if inside:
		return os.path.basename(inside[0]), library_names(z, inside[0], scratch)
	package = runtime_of(needs(z), python, scratch)
	if not package:
		raise Trouble("torch %s names no package with libcudart" % torch)
	with tempfile.TemporaryDirectory(dir=scratch) as d, zipfile.ZipFile(download(package, python, d)) as r:
		member = next(n for n in r.namelist() if re.search(r"/libcudart\.so\.[\d.]+$", n))
		return package, library_names(r, member, scratch)


def cuda_version(z):
	text = z.read("torch/version.py").decode()
	m = re.search(r"^cuda\b.*?=\s*['\"]([\d.]+)['\"]", text, re.M)
	return m.group(1) if m else None


def read(torch, python, cache, say):
	"""What the wheel of this release contains; from the cache if it was read before."""
	kept = os.path.join(cache, "torch-%s-%s.json.gz" % (torch, python))
	if os.path.exists(kept):
		with gzip.open(kept, "rt") as f:
			return json.load(f)
	say("torch %s for Python %s: downloading" % (torch, python))
	with tempfile.TemporaryDirectory(dir=cache, prefix="scratch-") as d:
		path = download("torch==%s" % torch, python, d)
		with zipfile.ZipFile(path) as z:
			facts = {"wheel": os.path.basename(path), "bytes": os.path.getsize(path), "cuda": cuda_version(z)}
			facts["library"] = {n: library_names(z, "torch/lib/" + n, d) for n in LIBRARIES
					    if "torch/lib/" + n in z.namelist()}
			if facts["cuda"]:
				facts["runtime"], facts["library"]["libcudart"] = runtime_names(z, torch, python, d)
	with gzip.open(kept + ".new", "wt", compresslevel=3) as f:
		json.dump(facts, f)
	os.replace(kept + ".new", kept)
	return facts
