#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mistakes that guard mode must name, made from seeds; a third of them free what another stream still uses.

    tests/gpu/guard_wrong.py [--build build] [--programs 30] [--seed 1] [-j N] [--gpu sim:h200 --python PYTHON] [--artifacts DIR] [name…]

Every program knows its truth: the line that launches the wrong kernel, the lines that allocated what it hits and let it go. Sizes, types, numbers of threads, what
happens before and after, and the form of the program come from the seed. PyTorch must not notice anything without guard mode; then the
verdict under --guard is compared. With --gpu the simulated GPU tests this test.
"""
import argparse
import concurrent.futures
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 120
OVERRUN, FREED = "illegal-access-out-of-bounds", "illegal-access-use-after-free"
HEAD = "import torch\nfrom guard_programs import busy, kernels, read, write, write_through\nkernels()\n"


class Maker:
    def __init__(self, seed):
        self.random, self.seed = random.Random(seed), seed

    def size(self):
        """In floats; no multiple of what a page holds, but of 16 bytes."""
        return 4 * self.random.choice((1, 25, 250, 1000, 4097, 20001, 262147))

    def before(self):
        return self.random.choice((
            "", "noise = [torch.ones(n + 1, device='cuda') for n in range(%d)]\ndel noise\n" % self.random.randint(1, 200),
            "a = torch.randn(200, 200, device='cuda')\nfor _ in range(5):\n    a = (a @ a).tanh()\n",
            "layer = torch.nn.Linear(64, 64).cuda()\nlayer(torch.ones(8, 64, device='cuda')).sum().backward()\n"))

    def after(self):
        return self.random.choice(("", "torch.cuda.synchronize()\n", "rest = torch.ones(500, device='cuda').sum().item()\n"))

    def made(self, name="x", size=None):
        size = size or self.size()
        return self.random.choice(("%s = torch.zeros(%d, device='cuda')  # made\n", "%s = torch.empty(%d, device='cuda')  # made\n")) % (name, size), size

    # overruns

    def past(self):
        made, size = self.made()
        threads = self.random.choice((1, 32, 64))
        return OVERRUN, self.before() + made + "y = torch.zeros(64, device='cuda')\nwrite(x.data_ptr(), %d, %d)  # bad\n" % (
            size - self.random.choice((0, threads - 1)), threads) + self.after()

    def past_read(self):
        made, size = self.made()
        return OVERRUN, self.before() + "y = torch.zeros(64, device='cuda')\n" + made + "read(y.data_ptr(), x.data_ptr(), %d, 32)  # bad\n" % (size - 8) + self.after()

    def past_rows(self):
        rows, width = self.random.randint(2, 40), 4 * self.random.randint(2, 60)
        return OVERRUN, self.before() + ("x = torch.zeros(%d, %d, device='cuda')  # made\nfor row in range(%d):\n    write(x.data_ptr(), row * %d, %d)  # bad\n" % (
            rows, width, rows + 1, width, width)) + self.after()

    # uses after free

    def freed(self):
        made, size = self.made()
        free = self.random.choice(("del x  # freed\n", "x = None  # freed\n", "x = torch.ones(%d, device='cuda')  # freed\n" % size))
        later = self.random.choice(("", "more = [torch.ones(n + 5, device='cuda') for n in range(%d)]\n" % self.random.randint(1, 100), "busy(20)\n"))
        use = self.random.choice(("write(p, 0, %d)  # bad\n", "read(y.data_ptr(), p, 0, %d)  # bad\n")) % min(32, size)
        return FREED, "y = torch.zeros(64, device='cuda')\n" + self.before() + made + "p = x.data_ptr()\n" + free + later + use + self.after()

    def freed_list(self):
        n = self.random.randint(2, 40)
        return FREED, self.before() + ("held = [torch.zeros(%d, device='cuda') for _ in range(%d)]  # made\np = held[%d].data_ptr()\nheld.clear()  # freed\n"
                                       "write(p, 0, 4)  # bad\n" % (self.size(), n, self.random.randrange(n))) + self.after()

    def freed_in_table(self):
        """The pointer is in memory, not among the parameters."""
        made, size = self.made(size=4 * self.random.choice((25, 1000, 20001)))
        wait = self.random.choice(("torch.cuda.synchronize()\ntime.sleep(0.05)\n", "more = [torch.ones(n + 5, device='cuda') for n in range(300)]\ndel more\n"
                                                                                   "torch.cuda.synchronize()\ntime.sleep(0.05)\n"))
        return FREED, "import time\n" + self.before() + made + "table = torch.tensor([x.data_ptr()], device='cuda')\nwrite_through(table)\ndel x  # freed\n" + wait + "write_through(table)  # bad\n" + self.after()

    def freed_graph(self):
        made, size = self.made()
        return FREED, self.before() + made + ("graph = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(graph):\n    y = x * 2  # bad\n    write(x.data_ptr(), 0, 4)  # bad\n"
                                              "graph.replay()\ntorch.cuda.synchronize()\ndel x  # freed\n"
                                              "for _ in range(%d):\n    torch.ones(300, device='cuda')\ngraph.replay()\ntorch.cuda.synchronize()\n" % self.random.randint(0, 50))

    # streams: the one that it was allocated for does not wait for the one that uses it

    def side(self):
        made, size = self.made()
        then = self.random.choice((
            "", "z = torch.zeros(%d, device='cuda')\n" % size, "z = torch.zeros(%d, device='cuda')\ntorch.cuda.current_stream().wait_stream(side)\n" % size,
            "for _ in range(%d):\n    z = torch.ones(%d, device='cuda') * 2\n" % (self.random.randint(2, 100), size)))
        use = self.random.choice(("write(%s, 0, 4)  # bad\n", "read(y.data_ptr(), %s, 0, 4)  # bad\n"))
        pointer = self.random.choice(("x.data_ptr()", "x[1:].data_ptr()")) if size > 8 else "x.data_ptr()"
        return FREED, ("side = torch.cuda.Stream()\ny = torch.zeros(64, device='cuda')\n" + self.before() + made + "torch.cuda.synchronize()\n"
                       "with torch.cuda.stream(side):\n    busy(%d)\n    %s" % (self.random.randint(5, 40), use % pointer) +
                       "del x  # freed\n" + then + "torch.cuda.synchronize()\n")

    def main_uses_sides(self):
        """Allocated for the side stream, used in the main one."""
        made, size = self.made()
        return FREED, ("side = torch.cuda.Stream()\n" + self.before() + "with torch.cuda.stream(side):\n    " + made +
                       "torch.cuda.current_stream().wait_stream(side)\nbusy(%d)\nwrite(x.data_ptr(), 0, 4)  # bad\ndel x  # freed\n" % self.random.randint(5, 40) +
                       self.random.choice(("", "with torch.cuda.stream(side):\n    z = torch.ones(%d, device='cuda')\n" % size)) + "torch.cuda.synchronize()\n")

    def other_recorded(self):
        """record_stream names one stream, another one uses it as well."""
        made, size = self.made()
        return FREED, ("side, third = torch.cuda.Stream(), torch.cuda.Stream()\n" + self.before() + made + "torch.cuda.synchronize()\nx.record_stream(side)\n"
                       "with torch.cuda.stream(side):\n    write(x.data_ptr(), 0, 4)\nwith torch.cuda.stream(third):\n    busy(%d)\n    write(x.data_ptr(), 0, 4)  # bad\n"
                       "del x  # freed\nz = torch.ones(%d, device='cuda')\ntorch.cuda.synchronize()\n" % (self.random.randint(5, 40), size))

    def program(self):
        kinds = (self.past, self.past_read, self.past_rows, self.freed, self.freed, self.freed_list, self.freed_in_table, self.freed_graph)
        streams = (self.side, self.side, self.main_uses_sides, self.other_recorded)
        kind = self.random.choice(streams if self.seed % 3 == 0 else kinds)
        cause, text = kind()
        return "%03d_%s" % (self.seed, kind.__name__), cause, HEAD + text + "torch.cuda.synchronize()\nprint('ended', flush=True)\n"


def lines_of(text):
    return {mark: [n for n, line in enumerate(text.split("\n"), 1) if line.endswith("# " + mark)] for mark in ("bad", "made", "freed")}


def judge(verdict, cause, text, name):
    """What the verdict lacks."""
    where, lines = verdict.get("where") or {}, lines_of(text)
    seen = {f["line"] for f in where.get("stack") or [] if f["file"].endswith(name + ".py")} | {where.get("line")}
    if verdict.get("cause") != cause:
        return "cause %s, expected %s" % (verdict.get("cause"), cause)
    if not seen & set(lines["bad"]):
        return "line %s, expected %s" % (where.get("line"), lines["bad"])
    why = " ".join(verdict.get("why") or [])
    for mark in ("made", "freed"):
        if lines[mark] and not any(re.search(r"%s\.py:%d\b" % (name, line), why) for line in lines[mark]):
            return "the line of `%s` (%s) is not in: %s" % (mark, lines[mark], why)
    return None


def try_one(args, seed):
    name, cause, text = Maker(seed).program()
    path, out = os.path.join(args.artifacts, name + ".py"), os.path.join(args.artifacts, name)
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUWHY")}
    env.update(PYTHONPATH=os.pathsep.join([HERE] + env.get("PYTHONPATH", "").split(os.pathsep)).rstrip(os.pathsep), PYTHONDONTWRITEBYTECODE="1", NO_COLOR="1", PYTHONWARNINGS="ignore")
    cuwhy, sim = [os.path.abspath(os.path.join(args.build, "cuwhy")), "run"], ["--gpu", args.gpu] if args.gpu else []
    results = []
    for command in ([] if args.gpu else [[args.python, path]]) + [cuwhy + sim + ["--guard", "--out", out, "--", args.python, path]]:
        try:
            results.append(subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=env))
        except subprocess.TimeoutExpired:
            return name, "still running after %d s" % LIMIT
    if len(results) == 2 and results[0].returncode:
        return name, "the plain program noticed it (status %d): %s" % (results[0].returncode, results[0].stderr[-300:])
    try:
        with open(os.path.join(out, "verdict.json"), encoding="utf-8") as stream:
            verdict = json.load(stream)
    except (OSError, ValueError):
        return name, "no verdict: " + results[-1].stderr[-500:]
    return name, judge(verdict, cause, text, name)


def main():
    parser = argparse.ArgumentParser(description="mistakes from seeds under cuwhy run --guard")
    parser.add_argument("--build", default="build")
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--programs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-j", type=int, default=1, dest="jobs", help="programs at a time")
    parser.add_argument("--gpu", help="the simulated GPU: sim:h200")
    parser.add_argument("--artifacts", help="leave programs and recordings in this folder")
    parser.add_argument("names", nargs="*", help="run only programs whose name contains one of these")
    args = parser.parse_args()
    if not args.gpu and subprocess.run([args.python, "-c", "import torch; raise SystemExit(not torch.cuda.is_available())"], capture_output=True).returncode:
        print("guard_wrong: skipped, there is no PyTorch with a GPU")
        return 0
    args.artifacts = os.path.abspath(args.artifacts or tempfile.mkdtemp(prefix="cuwhy-guard-"))
    os.makedirs(args.artifacts, exist_ok=True)
    seeds = [seed for seed in range(args.seed, args.seed + args.programs)
             if not args.names or any(name in Maker(seed).program()[0] for name in args.names)]
    found, began = 0, time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(try_one, args, seed) for seed in seeds]):
            name, problem = done.result()
            found += problem is None
            print("%s - %s%s" % ("not ok" if problem else "ok", name, ": " + problem if problem else ""), flush=True)
    print("%d of %d found, %.0f s; %s" % (found, len(seeds), time.monotonic() - began, args.artifacts))
    return 0 if found == len(seeds) else 1


if __name__ == "__main__":
    sys.exit(main())
