#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the stand-ins for NVIDIA's libraries against what the libraries of PyTorch's wheels import.

Every function that a wheel's libraries take from a library of NVIDIA's must be in the stand-in of that name, under the same
version node. Downloads a gigabyte per release, so only `make check-standins` runs it; a folder with an installed wheel
(--installed) is read where it is.
"""
import argparse
import glob
import json
import os
import sys
import tempfile
import zipfile

import elf_names
import wheel

FIRST = (2, 4)		# the oldest release that a dry run supports
OTHERS = ("_", "Py")	# names without a version node that are not NVIDIA's: of C++ and of Python
PYTHONS = ("3.11", "3.12", "3.13")


def read_library(path):
	"""(libraries it needs, names it defines, names it imports)"""
	data = elf_names.mapped(path)
	return elf_names.needed(data), sorted(elf_names.read(data)[0]), sorted(elf_names.imports(data), key=str)


def read_folder(folder):
	"""{file name: (needs, defines, imports)} of an installed wheel's libraries."""
	paths = glob.glob(os.path.join(folder, "torch", "lib", "*.so*")) + glob.glob(os.path.join(folder, "torch", "*.so"))
	return {os.path.basename(p): read_library(p) for p in paths}


def read_release(torch, python, cache):
	kept = os.path.join(cache, "imports-%s-%s.json" % (torch, python))
	if not os.path.exists(kept):
		print("torch %s for Python %s: downloading" % (torch, python), file=sys.stderr, flush=True)
		with tempfile.TemporaryDirectory(dir=cache, prefix="scratch-") as d:
			with zipfile.ZipFile(wheel.download("torch==%s" % torch, python, d)) as z:
				z.extractall(d, [n for n in z.namelist() if n.startswith("torch/") and ".so" in n])
			facts = read_folder(d)
		with open(kept + ".new", "w") as f:
			json.dump(facts, f)
		os.replace(kept + ".new", kept)
	with open(kept) as f:
		return json.load(f)


class StandIns:
	def __init__(self, folder):
		self.names = {os.path.basename(p): set(elf_names.read_file(p)[0]) for p in glob.glob(os.path.join(folder, "lib*.so.*"))}
		self.all = set().union(*self.names.values()) if self.names else set()


def missing(facts, stand_ins):
	"""{library: names} that no stand-in has."""
	inside = set().union(*(set(defined) for _, defined, _ in facts.values()))
	bad, ours = {}, {}
	for needs, _, imports in facts.values():
		for library, _, name in imports:
			if library in stand_ins.names:
				ours[name] = library
				if name not in stand_ins.names[library]:
					bad.setdefault(library, set()).add(name)
			elif library is None and name not in inside | stand_ins.all and not name.startswith(OTHERS):
				bad.setdefault("no library named", set()).add(name)
		for library in needs:
			known = library in stand_ins.names or library in facts or not library.startswith(("libcu", "libnv", "libnccl"))
			if not known:
				bad.setdefault(library, set()).add("(the library itself)")
	return bad, len(ours)


def report(label, facts, stand_ins):
	bad, count = missing(facts, stand_ins)
	print("%s: %d functions with a version, %s" % (label, count, "all there" if not bad else "missing:"))
	for library in sorted(bad):
		print("  %s: %s" % (library, " ".join(sorted(bad[library]))))
	return not bad


def main():
	ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
	ap.add_argument("--build", default="build", help="folder that make has filled")
	ap.add_argument("--cache", default="build/wheels", help="where what was read is kept (default: %(default)s)")
	ap.add_argument("--installed", action="append", default=[], help="a folder with an installed wheel, instead of releases")
	ap.add_argument("release", nargs="*", help="2.4, say; all when none is given")
	args = ap.parse_args()
	stand_ins = StandIns(os.path.join(args.build, "sim"))
	try:
		os.makedirs(args.cache, exist_ok=True)
		found = {} if args.installed else wheel.releases(PYTHONS, FIRST)
		todo = [(os.path.basename(f.rstrip("/")), lambda f=f: read_folder(f)) for f in args.installed]
		todo += [("torch " + v, lambda v=v, p=p: read_release(v, p, args.cache)) for n, (v, p) in
			 sorted(found.items(), key=lambda item: wheel.numbers(item[0])) if not args.release or n in args.release]
		results = [report(label, read(), stand_ins) for label, read in todo]
	except (wheel.Trouble, OSError, ValueError) as e:
		sys.exit("check-standins: %s" % e)
	if not results:
		sys.exit("check-standins: no such release")
	print("%d passed, %d failed" % (sum(results), len(results) - sum(results)))
	sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
	main()
