#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Healthy programs with captured graphs, made from seeds: guard mode must leave them alone, and their results as they are.

    tests/gpu/guard_graphs.py [--build build] [--programs 60] [--seed 1] [-j N] [--together 5] [--gpu sim:h200,pointers --python PYTHON]

A program captures one to four graphs of a random kind (models, pools, streams, a training step, make_graphed_callables, torch.compile) and runs them again after
random events: the cache is emptied, workspaces are cleared, other graphs come and go, other work runs on other streams and threads. --together of them share
a process, which is quicker, and more than one program's graphs are alive at once. Each runs without cuwhy and under --guard=align=256: there must be no
fault, and the same bytes. With --gpu the simulated GPU runs them: it computes nothing, but a matmul in a graph
reads its workspace there, too, and with `pointers` other kernels of a graph look whether what they were given is still mapped.
"""
import argparse
import concurrent.futures
import gc
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 280     # seconds for one process
LINE = re.compile(r"^program (\d+) (\w+) (.*)$", re.M)


# ---- one program ---------------------------------------------------------------------------------------------------

class Program:
    """What it does depends on the seed alone."""

    def __init__(self, torch, seed):
        self.torch, self.random, self.seed = torch, random.Random(seed), seed
        self.kept, self.graphs, self.told, self.pool = [], [], [], None
        self.biased = self.cleared = False      # a product with a bias has another workspace; workspaces were cleared
        torch.manual_seed(seed)

    def rand(self, *shape):
        return self.torch.randn(*shape, device="cuda")

    def products(self):
        """No bias: plain cuBLAS, with its workspace."""
        size = self.random.choice((32, 64, 200, 256))
        weights = [self.rand(size, size) / size for _ in range(self.random.randint(1, 4))]
        self.kept.append(weights)

        def forward(x):
            for w in weights:
                x = (x @ w).relu() @ w.t()
            return x.clone()
        return forward, self.rand(self.random.choice((1, 8, 100)), size)

    def linear(self):
        nn, size = self.torch.nn, self.random.choice((48, 128, 256))
        model = nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.LayerNorm(2 * size), nn.Linear(2 * size, size)).cuda()
        return model, self.rand(16, size)

    def convolution(self):
        nn, width = self.torch.nn, self.random.choice((4, 16, 32))
        model = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, 8, 3, stride=2),
                              nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)).cuda().eval()
        return model, self.rand(4, 3, 32, 32)

    def attention(self):
        functional, size = self.torch.nn.functional, self.random.choice((32, 64))
        dtype = self.random.choice((self.torch.float32, self.torch.bfloat16))
        w = (self.rand(size, 3 * size) / size).to(dtype)
        self.kept.append(w)

        def forward(x):
            b, n, c = x.shape
            q, k, v = ((x @ w).split(c, 2)[i].view(b, n, 2, c // 2).transpose(1, 2) for i in range(3))
            return functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, c)
        return forward, self.rand(2, 40, size).to(dtype)

    def model(self, names=("products", "products", "linear", "convolution", "attention")):
        name = self.random.choice(names)
        self.biased |= name in ("linear", "convolution")
        self.told.append(name)
        forward, x = getattr(self, name)()
        self.kept.append(forward)       # a graph does not keep what it was captured with
        return forward, x

    def warm(self, forward, x, stream):
        stream.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(stream), self.torch.no_grad():
            for _ in range(self.random.randint(1, 3)):
                forward(x)
        self.torch.cuda.current_stream().wait_stream(stream)

    # kinds of graphs: each gives a function that runs it and returns its results

    def captured(self):
        forward, x = self.model()
        stream, graph = self.torch.cuda.Stream(), self.torch.cuda.CUDAGraph()
        how = self.random.choice(("own", "own", "handle", "first"))
        if how == "handle":
            self.pool = self.pool or self.torch.cuda.graph_pool_handle()
        elif how == "first" and self.graphs and hasattr(self.graphs[0], "pool"):
            self.pool = self.graphs[0].pool()
        side = self.random.random() < 0.6
        self.told.append("captured %s%s" % (how, " on its warm-up stream" if side else ""))
        self.warm(forward, x, stream)
        with self.torch.cuda.graph(graph, pool=self.pool if how != "own" else None, stream=stream if side else None), self.torch.no_grad():
            y = forward(x)
            if self.random.random() < 0.4:
                y = (y.float() * 2).to(y.dtype).contiguous()
        self.graphs.append(graph)

        def run():
            x.copy_(self.torch.full_like(x, self.random.random()))
            graph.replay()
            return y
        return run

    def forked(self):
        """The capture goes over another stream and back."""
        forward, x = self.model(("products", "linear"))
        stream, other, graph = self.torch.cuda.Stream(), self.torch.cuda.Stream(), self.torch.cuda.CUDAGraph()
        self.told.append("forked")
        self.warm(forward, x, stream)
        self.warm(forward, x, other)
        with self.torch.cuda.graph(graph, stream=stream), self.torch.no_grad():
            other.wait_stream(stream)
            with self.torch.cuda.stream(other):
                z = forward(x)
            y = forward(x)
            stream.wait_stream(other)
            y = y + z
        self.graphs.append(graph)

        def run():
            x.copy_(self.torch.full_like(x, self.random.random()))
            graph.replay()
            return y
        return run

    def step(self):
        """A whole training step."""
        nn, size = self.torch.nn, self.random.choice((32, 100))
        model = nn.Sequential(nn.Linear(size, size, bias=False), nn.Tanh(), nn.Linear(size, 1, bias=False)).cuda()
        adam = self.torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=True, foreach=self.random.random() < 0.7)
        x, stream, graph = self.rand(20, size), self.torch.cuda.Stream(), self.torch.cuda.CUDAGraph()
        self.told.append("training step")

        def once():
            adam.zero_grad(set_to_none=True)
            loss = model(x).square().mean()
            loss.backward()
            adam.step()
            return loss
        stream.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(stream):
            for _ in range(3):
                once()
        self.torch.cuda.current_stream().wait_stream(stream)
        with self.torch.cuda.graph(graph, stream=stream if self.random.random() < 0.5 else None):
            loss = once()
        self.kept.append((model, adam, loss, x))
        self.graphs.append(graph)

        def run():
            graph.replay()
            return self.torch.cat([loss.reshape(1)] + [p.detach().reshape(-1) for p in model.parameters()])
        return run

    def callables(self):
        nn, size = self.torch.nn, self.random.choice((32, 96))
        self.told.append("make_graphed_callables")
        self.biased = True
        model = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, 4)).cuda()
        graphed = self.torch.cuda.make_graphed_callables(model, (self.rand(8, size),))
        self.kept.append((model, graphed))
        x = self.rand(8, size)

        def run():
            model.zero_grad()
            graphed(x).square().sum().backward()
            return self.torch.cat([p.grad.reshape(-1) for p in model.parameters()])
        return run

    def compiled(self):
        from torch.utils._triton import has_triton
        if not has_triton():
            return self.captured()
        self.told.append("reduce-overhead")
        self.biased = True
        forward, x = self.linear()
        fast = self.torch.compile(forward, mode="reduce-overhead")
        self.kept.append(fast)

        def run():
            with self.torch.no_grad():
                self.torch.compiler.cudagraph_mark_step_begin()
                return fast(x).clone()
        return run

    # what happens between runs. Clearing workspaces gives them back to PyTorch's cache while graphs have them. Without guard mode that goes well
    # as long as no tensor gets that memory (none here is large enough; those of products with a bias are small) and the cache is not emptied,
    # which every capture does

    def empty_cache(self):
        return self.other_work() if self.cleared else self.torch.cuda.empty_cache()

    def clear_workspaces(self):
        if self.biased:
            return self.other_work()
        self.cleared = True
        return self.torch._C._cuda_clearCublasWorkspaces()

    def other_work(self):
        for _ in range(self.random.randint(1, 40)):
            self.rand(self.random.randint(1, 100), 50).square().sum()

    def other_product(self):
        with self.torch.cuda.stream(self.torch.cuda.Stream()):
            x = self.rand(64, 64)
            self.kept.append((x @ x).sum())
        self.torch.cuda.synchronize()

    def other_thread(self):
        def work():
            with self.torch.cuda.stream(self.torch.cuda.Stream()):
                x = self.rand(50, 50)
                (x @ x).sum().item()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    def other_graph(self):
        """Comes, runs, and goes."""
        if self.cleared:
            return self.other_work()
        forward, x = self.model(("products", "attention"))
        graph = self.torch.cuda.CUDAGraph()
        self.warm(forward, x, self.torch.cuda.Stream())
        with self.torch.cuda.graph(graph), self.torch.no_grad():
            y = forward(x)
        graph.replay()
        if self.random.random() < 0.5:
            self.torch.cuda.synchronize()
        self.kept.append(y if self.random.random() < 0.3 else None)
        del graph, y
        return None

    def memory_pool(self):
        if not hasattr(self.torch.cuda, "MemPool"):
            return
        pool = self.torch.cuda.MemPool()
        with self.torch.cuda.use_mem_pool(pool):
            x = self.rand(30, 30)
        self.kept.append((x.sum(), pool))

    def collect(self):
        gc.collect()

    def run(self):
        kinds = [self.random.choice((self.captured, self.captured, self.captured, self.forked, self.step, self.callables, self.compiled))
                 for _ in range(self.random.randint(1, 4))]
        if self.compiled in kinds:      # takes workspaces from all other graphs when it captures its own: no healthy program has both
            kinds = [self.compiled] * len(kinds)
        events = (self.empty_cache, self.clear_workspaces, self.other_work, self.other_work, self.other_product, self.other_thread, self.other_graph,
                  self.memory_pool, self.collect)
        runs = [kind() for kind in kinds]
        digest = hashlib.sha256()
        for _ in range(self.random.randint(3, 8)):
            event = self.random.choice(events)
            self.told.append(event.__name__)
            event()
            for once in self.random.sample(runs, self.random.randint(1, len(runs))):
                out = once().detach().float().cpu()
                assert self.told and out.numel(), "no result"
                digest.update(out.numpy().tobytes())
        self.torch.cuda.synchronize()
        return digest.hexdigest()[:16], "; ".join(self.told)


def run_seeds(seeds):
    import torch
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    alive = []
    for seed in seeds:
        print("begins %d" % seed, flush=True)
        program = Program(torch, seed)
        print("program %d %s %s" % ((seed,) + program.run()), flush=True)
        alive.append(program)
    print("ended", flush=True)


# ---- all of them -----------------------------------------------------------------------------------------------------

def environment(seeds):
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUWHY")}
    env.update(PYTHONDONTWRITEBYTECODE="1", NO_COLOR="1", PYTHONWARNINGS="ignore", CUBLAS_WORKSPACE_CONFIG=":4096:8")
    if seeds[0] % 3 == 0:
        env["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    return env


def try_seeds(args, folder, seeds):
    """The lines of both, and what was wrong with the guarded one."""
    words = [args.python, os.path.abspath(__file__), "--run", ",".join(map(str, seeds))]
    out = os.path.join(folder, "guarded-%d-%d" % (seeds[0], len(seeds)))
    sim = ["--gpu", args.gpu] if args.gpu else []
    cuwhy = [os.path.abspath(os.path.join(args.build, "cuwhy")), "run"] + sim
    done = []
    for command in (cuwhy + ["--no-core-dump", "--"] if sim else []) + words, cuwhy + ["--guard=align=256", "--out", out, "--"] + words:
        try:
            done.append(subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=environment(seeds)))
        except subprocess.TimeoutExpired as late:
            done.append(subprocess.CompletedProcess(command, -1, (late.stdout or b"").decode(), "still running after %d s" % LIMIT))
    try:
        with open(os.path.join(out, "verdict.json"), encoding="utf-8") as stream:
            verdict = json.load(stream)
    except (OSError, ValueError):
        verdict = {}
    return done[0], done[1], verdict


def results(done):
    return {int(seed): (digest, told) for seed, digest, told in LINE.findall(done.stdout)}


def difference(args, folder, seed):
    """A program whose results differ runs twice more, alone: what varies without cuwhy is not guard mode's."""
    again = [try_seeds(args, folder, [seed])[:2] for _ in range(2)]
    plain, guarded = ([results(done[side]).get(seed, ("failed", ""))[0] for done in again] for side in (0, 1))
    why = "its results vary without cuwhy" if len(set(plain)) > 1 else "results differ" if plain != guarded else "results differed once"
    return "%s: alone %s without, %s with" % (why, " and ".join(plain), " and ".join(guarded))


def problems(args, folder, seeds):
    """(seed, what is wrong or None, what it did) of each; a process that dies is tried again from the next program on."""
    seeds = list(seeds)
    while seeds:
        plain, guarded, verdict = try_seeds(args, folder, seeds)
        had, got = results(plain), results(guarded)
        for seed in [s for s in seeds if s in got]:
            if seed not in had:
                yield seed, "only the plain program fails (status %d)" % plain.returncode, got[seed][1] + "\n" + plain.stderr[-2500:]
                continue
            same = bool(args.gpu) or had[seed][0] == got[seed][0]
            yield seed, None if same else difference(args, folder, seed), got[seed][1]
        left = [s for s in seeds if s not in got]
        if not left and (guarded.returncode or verdict.get("cause") != "none"):
            yield seeds[-1], "at the end: status %d, %s" % (guarded.returncode, verdict.get("cause")), guarded.stderr[-1500:]
        if left:
            why = "status %d, %s" % (guarded.returncode, verdict.get("cause"))
            if left[0] not in had:
                why = "the plain program fails, too (status %d): %s" % (plain.returncode, plain.stderr.strip()[-300:])
            yield left[0], why, had.get(left[0], ("", ""))[1] + "\n" + guarded.stderr[-2500:]
        seeds = left[1:]


def main():
    parser = argparse.ArgumentParser(description="healthy programs with captured graphs under cuwhy run --guard")
    parser.add_argument("--build", default="build")
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--programs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--together", type=int, default=5, help="programs in one process")
    parser.add_argument("-j", type=int, default=1, dest="jobs", help="processes at a time")
    parser.add_argument("--gpu", help="the simulated GPU: sim:h200")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        run_seeds([int(seed) for seed in args.run.split(",")])
        return 0
    ready = "import torch; raise SystemExit(not torch.cuda.is_available())"
    if not args.gpu and subprocess.run([args.python, "-c", ready], capture_output=True).returncode:
        print("guard_graphs: skipped, there is no PyTorch with a GPU")
        return 0
    seeds, bad, began = range(args.seed, args.seed + args.programs), 0, time.monotonic()
    groups = [seeds[i:i + args.together] for i in range(0, len(seeds), args.together)]
    with tempfile.TemporaryDirectory(prefix="cuwhy-guard-") as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(lambda g: list(problems(args, folder, g)), group) for group in groups]):
            for seed, problem, told in done.result():
                bad += problem is not None
                print("%s %d - %s" % ("not ok" if problem else "ok", seed, told.split("\n")[0]), flush=True)
                if problem:
                    print("    # %s\n%s" % (problem, "\n".join("    | " + line for line in told.split("\n")[1:])), flush=True)
    print("%d programs, %d not left alone, %.0f s" % (args.programs, bad, time.monotonic() - began))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
