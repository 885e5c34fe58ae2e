#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the GPU architectures inside PyTorch's wheels, from 1.13 to the newest, with kb/compat_torch.def.

Downloads several gigabytes, so only `make check-wheel-archs` runs it. Of each release the newest wheel that
pip finds is downloaded, its libtorch_cuda*.so are read by cuwhy's own reader, and removed again. The architectures of the
library with most fat binaries must be exactly those of the row, and those that the build itself published
(torch.cuda.get_arch_list() returns a text inside libtorch_python.so); and the row must say of several GPUs what the files say.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

import wheel

PYTHONS = ("3.12", "3.11", "3.10")
RUNS = (1, 2)	# FATBIN_COVER_SASS, FATBIN_COVER_JIT


def tool(build, *words):
	done = subprocess.run([os.path.join(build, "tests", "show_archs"), *words], capture_output=True, text=True)
	if done.returncode:
		raise wheel.Trouble("show_archs %s: %s" % (" ".join(words), done.stderr.strip() or "not in the table"))
	return done.stdout


def read_library(build, z, member, scratch):
	"""What the reader says about one library in a wheel: {"general": [...], "extra": [...], "covers": {75: True}, ...}"""
	with tempfile.NamedTemporaryFile(dir=scratch, suffix=".so") as f:
		with z.open(member) as packed:
			shutil.copyfileobj(packed, f, 1 << 20)
		f.flush()
		found = {"name": os.path.basename(member), "covers": {}, "bytes": z.getinfo(member).file_size}
		for line in tool(build, "library", f.name).splitlines():
			key, _, rest = line.partition(" ")
			if key == "covers":
				device, answer = rest.split()
				found["covers"][int(device)] = int(answer) in RUNS
			else:
				found[key] = rest
	found["general"] = found["general"].split()
	found["count"] = int(found["binaries"].split()[0])
	return found


def published(z):
	"""The list that torch.cuda.get_arch_list() would return, without running it."""
	text = z.read("torch/lib/libtorch_python.so")
	found = set(re.findall(rb"((?:sm_\d+[af]? ){2,}(?:sm|compute)_\d+[af]?)\0", text))
	if len(found) != 1:
		raise wheel.Trouble("libtorch_python.so has %d lists of architectures" % len(found))
	return found.pop().decode().split()


def row_names(archs):
	"""The table's "75 120+PTX" as torch writes it: sm_75 sm_120 compute_120"""
	words = archs.split()
	return ["sm_" + w.split("+")[0] for w in words] + ["compute_" + w[:-4] for w in words if w.endswith("+PTX")]


def row_covers(archs, device):
	"""By hand, not with cuwhy's functions: the same major version, and not a higher minor one."""
	have = [int(w.split("+")[0]) for w in archs.split()]
	ptx = [int(w[:-4]) for w in archs.split() if w.endswith("+PTX")]
	return any(a // 10 == device // 10 and a <= device for a in have) or any(a <= device for a in ptx)


def judge(build, version, python, scratch):
	"""One row of the table that is printed."""
	with tempfile.TemporaryDirectory(dir=scratch, prefix="scratch-") as d:
		path = wheel.download("torch==%s" % version, python, d)
		with zipfile.ZipFile(path) as z:
			cuda = wheel.cuda_version(z)
			members = [n for n in z.namelist() if re.search(r"/libtorch_cuda\w*\.so$", n)]
			if not cuda or not members:
				raise wheel.Trouble("torch %s for Python %s has no CUDA" % (version, python))
			libraries = [read_library(build, z, n, d) for n in members]
			own = published(z)
	main = max((l for l in libraries if "linalg" not in l["name"]), key=lambda l: l["count"])
	archs = tool(build, "wheel", version, cuda, "x86_64").strip()
	wrong = []
	if main["general"] != row_names(archs):
		wrong.append("the table says %s" % " ".join(row_names(archs)))
	if main["general"] != own:
		wrong.append("the build says %s" % " ".join(own))
	wrong += ["capability %d: the file says %s, the table %s" % (d, is_there, not is_there)
		  for d, is_there in main["covers"].items() if is_there != row_covers(archs, d)]
	wrong += ["%s: %s" % (l["name"], l["damage"]) for l in libraries if l["damage"]]
	return [version, "cu" + cuda.replace(".", ""), main["name"], "%d MB" % (main["bytes"] >> 20), main["ms"] + " ms",
		str(main["count"]), " ".join(main["general"]), main["extra"] or "-"], wrong


def table(rows):
	widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
	for r in rows:
		print("  ".join(c.ljust(w) for c, w in zip(r, widths)).rstrip())


def main():
	ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
	ap.add_argument("--build", default="build")
	ap.add_argument("--scratch", default="build/wheels", help="where wheels lie while they are read (default: %(default)s)")
	ap.add_argument("release", nargs="*", help="2.4, say; all when none is given")
	args = ap.parse_args()
	os.makedirs(args.scratch, exist_ok=True)
	started = time.monotonic()
	found = wheel.releases(PYTHONS, since=(1, 13))
	names = [n for n in sorted(found, key=wheel.numbers) if not args.release or n in args.release]
	rows, bad = [["release", "CUDA", "library", "size", "read in", "fat binaries", "architectures", "extra"]], 0
	for n in names:
		version, python = found[n]
		try:
			row, wrong = judge(args.build, version, python, args.scratch)
			rows.append(row)
		except wheel.Trouble as e:
			wrong = [str(e)]
		bad += bool(wrong)
		print("%s - torch %s%s" % ("not ok" if wrong else "ok", version, "".join("\n    " + w for w in wrong)), flush=True)
	print()
	table(rows)
	variants = {r[1] for r in rows[1:]}
	print("\nwheel-archs: %d passed, %d failed; %d CUDA variants, %.0f s" %
	      (len(names) - bad, bad, len(variants), time.monotonic() - started))
	return bad != 0 or len(rows) < 2


if __name__ == "__main__":
	try:
		sys.exit(main())
	except wheel.Trouble as e:
		sys.exit("check-wheel-archs: %s" % e)
