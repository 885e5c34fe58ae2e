#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the symbols that the recorder uses against one PyTorch wheel of each release from 2.0 to the newest.

Downloads several gigabytes, so only `make check-wheels` runs it. It shows that a function exists under
a name that we wrap, and that the wheel's libraries look it up by name, so that ours is found first. It cannot show
that the offsets of fields inside PyTorch's objects (NODE_SEQUENCE, NODE_THREAD) are what rec_torch.c assumes, nor
that a function still means the same: tests with that release do.
"""
import argparse
import os
import re
import sys
import time

import wheel

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDER = os.path.join(HERE, "..", "..", "src", "recorder")


def source(name):
	with open(os.path.join(RECORDER, name)) as f:
		return f.read()


def symbols_of_recorder():
	"""{spelling: (library, name in the symbol table)}"""
	table = re.search(r"#define REAL\(X\)(.*?[^\\])\n", source("rec_torch.c"), re.S).group(1)
	found = {i: (lib, name) for lib, i, name in re.findall(r'X\("([^"]+)",\s*(\w+),[\s\\]*"(\w+)"\)', table)}
	table = re.search(r"#define RUNTIME\(X\)(.*?[^\\])\n", source("rec_cudart.c"), re.S).group(1)
	found.update((n, ("libcudart", n)) for n in re.findall(r"X\((\w+)\)", table))
	if len(found) < 10:
		raise wheel.Trouble("the recorder's tables could not be read: has their form changed?")
	return found


class Feature:
	def __init__(self, needed, name, area, since, spellings):
		self.needed, self.name, self.area, self.spellings = needed, name, area, spellings
		self.what, version = since.split("-")
		self.since = wheel.numbers(version)

	def expected(self, torch, cuda):
		have = torch if self.what == "torch" else cuda
		return bool(have) and wheel.numbers(have) >= self.since


def supported(symbols):
	"""(Python versions, features); a symbol that no line names is a feature by itself."""
	pythons, features, named = [], [], set()
	with open(os.path.join(HERE, "supported.def")) as f:
		for words in (line.split("#")[0].split() for line in f):
			if words and words[0] == "python":
				pythons = words[1:]
			elif words and words[0] in ("need", "want"):
				features.append(Feature(words[0] == "need", *words[1:4], words[4:]))
				named.update(words[4:])
			elif words:
				raise wheel.Trouble("supported.def: what is '%s'?" % words[0])
	for s in sorted(named - set(symbols)):
		print("check-wheels: supported.def names '%s', which the recorder does not have" % s, file=sys.stderr)
	for f in features:
		f.spellings = [s for s in f.spellings if s in symbols]
	features = [f for f in features if f.spellings]
	features += [Feature(True, s, "other", "torch-2.0", [s]) for s in symbols if s not in named]
	return pythons, features


def label(feature, spelling):
	"""What distinguishes this spelling from the others of its feature."""
	if len(feature.spellings) == 1:
		return "yes"
	return spelling.split("_", 1)[-1]	# check_i, check_j


def function_of(mangled):
	"""The last word of a mangled nested name: its function."""
	m, word = re.match(r"_ZN?", mangled), mangled
	at = m.end() if m else len(mangled)
	while m := re.compile(r"\d+").match(mangled, at):
		at = m.end() + int(m.group())
		word = mangled[m.end():at]
	return word


def similar(name, libraries):
	"""Names with the same function in them, for whoever has to add a spelling."""
	word = function_of(name)
	return sorted({"%s: %s" % (lib, s) for lib, names in libraries.items() for s in names["defined"] if word in s})[:12]


class Release:
	"""One wheel and its results."""
	def __init__(self, torch, facts, symbols, features):
		self.torch, self.facts, self.cells, self.missing, self.uncalled = torch, facts, {}, [], []
		libraries = facts["library"]
		own = {n: set(libraries[n]["defined"]) for n in libraries}
		used = set().union(*(names["used"] for names in libraries.values()))
		for f in features:
			there = [s for s in f.spellings if symbols[s][1] in own.get(symbols[s][0], ())]
			due = f.expected(torch, facts["cuda"])
			self.cells[f.name] = "+".join(label(f, s) for s in there) or ("MISSING" if f.needed and due else "-")
			if due and not there:
				self.missing.append(f)
			# libcudart's callers are libraries that are not read here
			if there and symbols[there[0]][0] != "libcudart" and not any(symbols[s][1] in used for s in there):
				self.cells[f.name] += "!"
				self.uncalled.append(f)

	def bad(self):
		return [f for f in self.missing if f.needed] + [f for f in self.uncalled if f.needed]


def table(rows):
	widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
	for r in rows:
		print("  ".join(c.ljust(w) for c, w in zip(r, widths)).rstrip())


def show(results, features, symbols):
	areas = []
	for f in features:
		if f.area not in areas:
			areas.append(f.area)
	features = sorted(features, key=lambda f: areas.index(f.area))
	table([["release", "python", "CUDA"] + ["%s:%s" % (f.area, f.name) for f in features]] +
	      [[r.torch, r.facts["wheel"].split("-")[-3], r.facts["cuda"] or "none"] + [r.cells[f.name] for f in features]
	       for r in results])
	print("\n-  not there, and not counted on;  !  there, but looked up by no library of the wheel\n"
	      "Checked are names. Where fields lie in PyTorch's objects (NODE_SEQUENCE, NODE_THREAD) no symbol tells.")
	for r in results:
		for f in r.missing:
			print("\ntorch %s lacks '%s'%s; names like it there:" %
			      (r.torch, f.name, "" if f.needed else " (not needed)"))
			near = {line for s in f.spellings for line in similar(symbols[s][1], r.facts["library"])}
			for line in sorted(near) or ["none"]:
				print("  " + line)
		for f in r.uncalled:
			print("\ntorch %s: '%s' is called inside its own library alone: a preloaded one is not asked" %
			      (r.torch, f.name))


def chosen(found, words):
	names = sorted(found, key=wheel.numbers)
	wrong = [w for w in words if w not in found and w not in [v for v, _ in found.values()]]
	if wrong:
		raise wheel.Trouble("no such release: %s (there are: %s)" % (" ".join(wrong), " ".join(names)))
	return [found[n] for n in names if not words or n in words or found[n][0] in words]


def main():
	ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
	ap.add_argument("--cache", default="build/wheels", help="where what was read is kept (default: %(default)s)")
	ap.add_argument("release", nargs="*", help="2.4, say; all when none is given")
	args = ap.parse_args()
	os.makedirs(args.cache, exist_ok=True)
	results, failed, began = [], 0, time.time()
	try:
		symbols = symbols_of_recorder()
		pythons, features = supported(symbols)
		todo = chosen(wheel.releases(pythons), args.release)
	except wheel.Trouble as e:
		sys.exit("check-wheels: %s" % e)
	for torch, python in todo:
		try:
			facts = wheel.read(torch, python, args.cache, lambda s: print(s, file=sys.stderr, flush=True))
			results.append(Release(torch, facts, symbols, features))
		except (wheel.Trouble, OSError, ValueError, KeyError, StopIteration) as e:
			failed += 1
			print("check-wheels: torch %s could not be read: %s" % (torch, e or type(e).__name__), file=sys.stderr)
	if results:
		show(results, features, symbols)
	bad = sum(1 for r in results if r.bad())
	print("\n%d releases, %d symbols, %.0f s" % (len(results), len(symbols), time.time() - began))
	print("%d passed, %d failed" % (len(results) - bad, bad + failed))
	sys.exit(1 if bad or failed else 0)


if __name__ == "__main__":
	main()
