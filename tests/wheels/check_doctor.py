#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks real PyTorch wheels, from 1.13 to the newest, with `cuwhy doctor` against old and new GPUs and drivers.

Downloads several gigabytes, so only `make check-doctor-wheels` runs it. Of each release the wheel that pip finds
is unpacked, without its dependencies, into an environment of its own, and removed before the next one:

  bare      the tree with that environment alone (--root): the architectures must be those that the build itself published, the
            missing dependencies must be reported, and nothing may be claimed about a system whose files are not there;
  complete  with the dependencies' names and empty libraries put in: judged against every machine below, each given as the
            facts of a bundle. What is right is decided here, by rules written by hand (rule()), never by cuwhy's tables.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

import check_archs
import wheel

PYTHONS = ("3.12", "3.11", "3.10")
RELEASES = ("1.13", "2.0", "2.3", "2.6", "2.7", "2.8", "2.10", "2.11")	# and the newest: every CUDA version that was ever a default
MACHINES = (	# name, PCI device, capability, its drivers with their CUDA version
	("Tesla K80", 0x102d, 37, (("450.80.02", 11000), ("470.256.02", 11040))),
	("NVIDIA GeForce GTX 1080", 0x1b80, 61, (("470.256.02", 11040), ("535.183.01", 12020), ("580.95.05", 13000))),
	("Tesla V100-SXM2-16GB", 0x1db1, 70, (("418.87.01", 10010), ("550.54.15", 12040), ("580.95.05", 13000))),
	("Tesla T4", 0x1eb8, 75, (("450.80.02", 11000), ("525.60.13", 12000), ("595.71.05", 13020))),
	("NVIDIA GeForce RTX 3090", 0x2204, 86, (("470.57.02", 11040), ("535.54.03", 12020), ("610.43.02", 13030))),
	("NVIDIA GeForce RTX 4090", 0x2684, 89, (("520.61.05", 11080), ("535.183.01", 12020), ("580.65.06", 13000))),
	("NVIDIA H100 80GB HBM3", 0x2330, 90, (("525.85.12", 12000), ("570.124.06", 12080), ("580.95.05", 13000))),
	("NVIDIA B200", 0x2901, 100, (("570.124.06", 12080), ("580.95.05", 13000))),
	("NVIDIA GeForce RTX 5090", 0x2b85, 120, (("570.124.06", 12080), ("595.71.05", 13020))),
	("NVIDIA GB10", 0x2e12, 121, (("580.95.05", 13000), ("610.43.02", 13030))),
)
FLOOR = {11: (450, 80, 2), 12: (525, 60, 13), 13: (580, 65, 6)}	# NVIDIA's table of minor-version compatibility
LAST_BRANCH = ((37, 470), (70, 580))				# Kepler; Maxwell, Pascal and Volta
FIRST_CUDA = {89: (11, 8), 90: (11, 8), 100: (12, 8), 120: (12, 8), 121: (12, 9)}
PTX_READ = {10010: 64, 11000: 70, 11040: 74, 11080: 78, 12000: 80, 12020: 82, 12040: 84, 12080: 87, 13000: 90, 13020: 92, 13030: 93}
FOLDERS = {"libcudart": "cuda_runtime", "libcublas": "cublas", "libcublasLt": "cublas", "libcudnn": "cudnn", "libcufft": "cufft",
	   "libcurand": "curand", "libcusparse": "cusparse", "libcusparseLt": "cusparselt", "libcusolver": "cusolver",
	   "libnccl": "nccl", "libcupti": "cuda_cupti", "libnvrtc": "cuda_nvrtc", "libnvToolsExt": "nvtx", "libcufile": "cufile",
	   "libnvJitLink": "nvjitlink", "libnvshmem_host": "nvshmem"}
ONE_FOLDER = ("cudnn", "nccl", "cusparselt", "nvshmem")		# of CUDA 13 only these have one of their own


# --- what is right, by hand -------------------------------------------------------------------------------------------------

def rule(cuda, archs, ptx, gpu, driver):
	"""(cause of the whole, check: its cause and status) for a wheel for this CUDA version with this code, on a GPU with a driver."""
	_, _, cc, _ = gpu
	have = [int(a[3:]) for a in archs if re.fullmatch(r"sm_\d+", a)]
	jit = [int(a[8:]) for a in archs if re.fullmatch(r"compute_\d+", a)]
	found = {}
	if wheel.numbers(driver[0]) < FLOOR[cuda[0]]:
		found["runtime"] = ("driver-too-old", "FAIL")
	if any(a // 10 == cc // 10 and a <= cc for a in have):
		found["code"] = (None, "OK")
	elif any(a <= cc for a in jit):
		found["code"] = (None, "OK") if ptx <= PTX_READ[driver[1]] else ("ptx-newer-than-driver", "FAIL")
	else:
		found["code"] = ("gpu-too-old" if cc < min(have) else "arch-not-in-wheel", "FAIL")
	found.setdefault("runtime", (None, "OK"))
	# NVIDIA: code for 8.6 runs on 8.9, but cuFFT before CUDA 11.8 fails there
	if found["code"][1] == "OK" and cc == 89 and cuda < (11, 8):
		found["libraries"] = ("library-predates-gpu", "WARN")
	if found["code"][1] == "OK" and cuda < FIRST_CUDA.get(cc, (0, 0)):
		found["compilers"] = ("nvrtc-arch-unsupported", "WARN")
	order = [found.get(c, (None, "OK")) for c in ("code", "runtime", "libraries", "compilers")]  # no driver helps where there is no code
	whole = next((f[0] for s in ("FAIL", "WARN") for f in order if f[1] == s), "none")
	return whole, found


def newer_driver_exists(cc, driver):
	return all(cc > last or int(driver.split(".")[0]) < branch for last, branch in LAST_BRANCH)


# --- environments -----------------------------------------------------------------------------------------------------------

def unpack(path, root, python):
	packages = os.path.join(root, "venv", "lib", "python" + python, "site-packages")
	os.makedirs(packages)
	os.makedirs(os.path.join(root, "venv", "bin"))
	with zipfile.ZipFile(path) as z:
		z.extractall(packages)
		facts = {"cuda": wheel.cuda_version(z), "archs": check_archs.published(z)}
	with open(os.path.join(root, "venv", "pyvenv.cfg"), "w") as f:
		f.write("home = /usr/bin\nversion = %s.0\n" % python)
	os.symlink("/usr/bin/python" + python, os.path.join(root, "venv", "bin", "python"))
	return packages, facts


def requirements(packages, python):
	"""(name, version) of everything that this torch needs here; pip's own reader, not cuwhy's."""
	from pip._vendor.packaging.requirements import Requirement
	info = next(n for n in os.listdir(packages) if re.fullmatch(r"torch-[\w.+]+\.dist-info", n))
	env = {"platform_system": "Linux", "platform_machine": "x86_64", "python_version": python, "sys_platform": "linux", "extra": ""}
	with open(os.path.join(packages, info, "METADATA"), encoding="utf-8") as f:
		for line in f.read().split("\n\n")[0].splitlines():
			if not line.startswith("Requires-Dist:"):
				continue
			r = Requirement(line.split(":", 1)[1].strip())
			if r.marker and not r.marker.evaluate(env):
				continue
			exact = [s.version for s in r.specifier if s.operator in ("==", ">=", "~=")]
			yield r.name, exact[0].rstrip(".*") if exact else "1.0"


def dynamic(path, what):
	"""The texts in a library's dynamic section."""
	shown = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, errors="replace").stdout
	return re.findall(r"\((?:%s)\).*?\[(.+?)\]" % what, shown)


def folder_of(name, lib, cuda):
	"""Where the package with this library puts it; the release itself outranks our list."""
	found = [p for r in dynamic(os.path.join(lib, "libtorch_cuda.so"), "RPATH|RUNPATH") for p in r.split(":") if "/%s/" % name in p]
	if found:
		return os.path.normpath(found[0].replace("$ORIGIN", lib))
	if cuda[0] >= 13 and name not in ONE_FOLDER:
		name = "cu%d" % cuda[0]
	return os.path.join(os.path.dirname(os.path.dirname(lib)), "nvidia", name, "lib")


def complete(packages, cuda, python):
	"""Adds the dependencies: their metadata, and libraries with nothing but their names."""
	for name, version in requirements(packages, python):
		info = os.path.join(packages, "%s-%s.dist-info" % (name.replace("-", "_"), version))
		os.makedirs(info, exist_ok=True)
		with open(os.path.join(info, "METADATA"), "w") as f:
			f.write("Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name, version))
	folder = os.path.join(packages, "torch", "lib")
	sonames = {s for n in os.listdir(folder) for s in dynamic(os.path.join(folder, n), "NEEDED")}
	for soname in sorted(sonames):
		name = FOLDERS.get(re.split(r"[-.]", soname)[0])
		if not name or os.path.exists(os.path.join(folder, soname)):
			continue
		place = folder_of(name, folder, cuda)
		os.makedirs(place, exist_ok=True)
		subprocess.run([*os.environ.get("CC", "gcc").split(), "-shared", "-nostdlib", "-Wl,-soname," + soname, "-o", os.path.join(place, soname),
				"-x", "c", "/dev/null"], check=True)


def machine(gpu, driver):
	"""The facts of one healthy machine, as a bundle has them."""
	name, device, cc, _ = gpu
	card = {"name": name, "pci": "00000000:01:00.0", "cc_major": cc // 10, "cc_minor": cc % 10, "compute_mode": 0}
	nodes = [{"path": "/dev/" + n, "exists": True, "error": 0} for n in ("nvidiactl", "nvidia0", "nvidia-uvm")]
	return {"host": {"os": {"arch": "x86_64"}, "kernel": {"nvidia": True, "uvm": True, "version": driver[0]}, "container": {"kind": "none"},
			 "wsl": {"version": 0}, "node": nodes,
			 "gpu": [{"address": "0000:01:00.0", "device": device, "driver": "nvidia", "answers": True}]},
		"variables": {}, "nvml": {"driver": driver[0], "cuda": driver[1], "gpus": [dict(card, index=0)]},
		"cuda": {"init": 0, "version": driver[1], "count": 1, "devices": [card]}}


# --- judging ----------------------------------------------------------------------------------------------------------------

def doctor(build, *words):
	"""(exit status, answer, seconds)"""
	began = time.monotonic()
	done = subprocess.run([os.path.join(build, "cuwhy"), "doctor", "--json", *words], capture_output=True, text=True, timeout=60)
	took = time.monotonic() - began
	try:
		return done.returncode, json.loads(done.stdout), took
	except ValueError:
		raise wheel.Trouble("cuwhy doctor %s: status %d, no JSON: %s" % (" ".join(words), done.returncode, done.stderr.strip()[-300:]))


def check_bare(build, root, version, facts, scratch):
	"""What is wrong with the verdict about the environment alone."""
	status, a, took = doctor(build, "--root", root, "--python", "/venv", "--bundle", os.path.join(scratch, "bare.json"))
	fact = a["facts"]
	wrong = []
	if fact.get("torch.archs", "").split() != facts["archs"]:
		wrong.append("architectures %s, the build says %s" % (fact.get("torch.archs"), " ".join(facts["archs"])))
	if (fact.get("torch.version", "").split("+")[0], fact.get("torch.cuda")) != (version, facts["cuda"]):
		wrong.append("torch %s for CUDA %s" % (fact.get("torch.version"), fact.get("torch.cuda")))
	packages = next((c for c in a["checks"] if c["id"] == "packages"), {})
	if (status, packages.get("cause")) != (1, "package-conflict"):
		wrong.append("without dependencies: status %d, packages %s" % (status, packages))
	return wrong, took


def judge_pair(build, scratch, base, facts, gpu, driver):
	"""(cell of the table, what is wrong)"""
	path = os.path.join(scratch, "pair.json")
	with open(path, "w") as f:
		json.dump(dict(base, **machine(gpu, driver)), f)
	status, a, _ = doctor(build, path)
	whole, found = rule(wheel.numbers(facts["cuda"]), facts["archs"], 0, gpu, driver)
	wrong = []
	if (a["cause"], status) != (whole, 0 if whole == "none" else 1):
		wrong.append("%s (exit %d), should be %s" % (a["cause"], status, whole))
	shown = {c["id"]: (c["cause"], c["status"]) for c in a["checks"]}
	for check in ("runtime", "code", "libraries", "packages", "extensions", "compilers"):
		right = found.get(check, (None, "OK"))
		# what needs code that runs is not listed where there is none
		if shown.get(check, right if check == "compilers" else None) != right:
			wrong.append("%s: %s, should be %s" % (check, shown.get(check), right))
	advice = json.dumps(a["fix"])
	if "nvidia-driver-" in advice and (found["code"][0] in ("gpu-too-old", "arch-not-in-wheel") or not newer_driver_exists(gpu[2], driver[0])):
		wrong.append("advises a newer driver, which does not help or does not exist: %s" % advice)
	return "ok" if whole == "none" else whole, wrong


def judge(build, version, python, scratch):
	"""(row of the table, cells, what is wrong)"""
	with tempfile.TemporaryDirectory(dir=scratch, prefix="doctor-") as d:
		root = os.path.join(d, "root")
		path = wheel.download("torch==%s" % version, python, d)
		packages, facts = unpack(path, root, python)
		os.unlink(path)
		if not facts["cuda"]:
			raise wheel.Trouble("torch %s for Python %s has no CUDA" % (version, python))
		wrong, bare_s = check_bare(build, root, version, facts, d)
		complete(packages, wheel.numbers(facts["cuda"]), python)
		_, a, full_s = doctor(build, "--python", os.path.join(root, "venv"), "--bundle", os.path.join(d, "full.json"))
		with open(os.path.join(d, "full.json")) as f:
			base = {k: v for k, v in json.load(f).items() if k not in ("host", "variables", "nvml", "cuda", "process")}
		cells = []
		for gpu in MACHINES:
			for driver in gpu[3]:
				cell, bad = judge_pair(build, d, base, facts, gpu, driver)
				cells.append((gpu[0], driver[0], cell))
				wrong += ["%s, driver %s: %s" % (gpu[0], driver[0], b) for b in bad]
		lib = os.path.join(packages, "torch", "lib")
		size = max(os.path.getsize(os.path.join(lib, n)) for n in os.listdir(lib) if n.startswith("libtorch_cuda"))
		row = [version, "cu" + facts["cuda"].replace(".", ""), "%d MB" % (size >> 20), "%.2f s" % bare_s, "%.2f s" % full_s,
		       " ".join(facts["archs"])]
	return row, cells, wrong


def chosen(found, words):
	names = sorted(found, key=wheel.numbers)
	if words:
		return [n for n in names if n in words]
	return [n for n in names if n in RELEASES or n == names[-1]]


def main():
	ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
	ap.add_argument("--build", default="build")
	ap.add_argument("--scratch", default="build/wheels", help="where wheels lie while they are judged (default: %(default)s)")
	ap.add_argument("release", nargs="*", help="2.4, say; a choice of them when none is given")
	args = ap.parse_args()
	os.makedirs(args.scratch, exist_ok=True)
	if shutil.disk_usage(args.scratch).free < 8 << 30:
		raise wheel.Trouble("a wheel and what is in it need 8 GB for a while; '%s' has less" % args.scratch)
	began, rows, pairs, bad, count = time.monotonic(), [["release", "CUDA", "libtorch_cuda", "bare", "complete", "architectures"]], [], 0, 0
	found = wheel.releases(PYTHONS, since=(1, 13))
	for name in chosen(found, args.release):
		try:
			row, cells, wrong = judge(args.build, *found[name], args.scratch)
			rows.append(row)
			pairs.append(cells)
			count += len(cells)
		except wheel.Trouble as e:
			wrong = [str(e)]
		bad += bool(wrong)
		print("%s - torch %s%s" % ("not ok" if wrong else "ok", found[name][0], "".join("\n    " + w for w in wrong)), flush=True)
	print()
	check_archs.table(rows)
	if pairs:
		print()
		check_archs.table([["GPU", "driver"] + [r[0] for r in rows[1:]]] +
				  [[c[0][0].replace("NVIDIA ", "").replace("GeForce ", ""), c[0][1]] + [x[2] for x in c] for c in zip(*pairs)])
	variants = {r[1] for r in rows[1:]}
	print("\ndoctor-wheels: %d passed, %d failed; %d CUDA variants, %d pairs of wheel and machine, %.0f s" %
	      (len(rows) - 1 - bad if bad < len(rows) else 0, bad, len(variants), count, time.monotonic() - began))
	return bad != 0 or len(rows) < 2


if __name__ == "__main__":
	try:
		sys.exit(main())
	except wheel.Trouble as e:
		sys.exit("check-doctor-wheels: %s" % e)
