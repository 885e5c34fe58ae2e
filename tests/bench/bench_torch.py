# SPDX-License-Identifier: Apache-2.0
"""The part of bench_gpu.py that runs under cuwhy: PyTorch with recording on and paused in turn."""
import ctypes
import os
import sys
import time

import torch
import torch.nn as nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import meter  # noqa: E402
import stats  # noqa: E402

OPS, OP_BLOCKS = 500, 400
STEPS, STEP_BLOCKS = 2, 60
TINY = {"width": 512, "layers": 6, "batch": 16, "length": 256, "steps": 5}     # 20 million: waits for Python
GPT2_SMALL = {"width": 768, "layers": 12, "batch": 12, "heads": 12, "words": 50257}  # 163 million, embeddings not shared
TINY_BLOCKS, SMALL_BLOCKS, HISTORY_BLOCKS = 100, 60, 40
CALL_BLOCKS = 250

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
"""


def blocks(pause, run, count):
    """Seconds of each block, recording on and paused, paired in time."""
    times = ([], [])
    for _ in range(6):
        run()
    for number in range(2 * count):
        paused = (number + number // 2) % 2
        torch.cuda.synchronize()
        pause(paused)
        begin = time.perf_counter()
        run()
        times[paused].append(time.perf_counter() - begin)
        pause(0)
    return times


def launch_bound():
    x = torch.zeros(1024, device="cuda")

    def run():
        for _ in range(OPS):
            x.add_(1)
        torch.cuda.synchronize()
    return run


def allocating():
    """Each operation allocates a tensor and frees one."""
    x = torch.zeros(1024, device="cuda")

    def run():
        y = x
        for _ in range(OPS):
            y = y + 1
        torch.cuda.synchronize()
    return run


def history(paused):
    """PyTorch's own record of its allocator, with Python stacks."""
    torch.cuda.memory._record_memory_history(None if paused else "all", stacks="python", max_entries=1000000)


class Step:
    """A training step of a transformer in bfloat16: about 0.6 billion parameters unless told otherwise. With `words` it
    reads and predicts words, as language models do."""

    def __init__(self, width=2048, layers=12, batch=16, length=1024, heads=16, words=0, steps=STEPS):
        self.steps, classes = steps, words or 512
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True,
                                           norm_first=True)
        self.model = nn.Sequential(nn.Embedding(words, width) if words else nn.Identity(),
                                   nn.TransformerEncoder(layer, layers, enable_nested_tensor=False),
                                   nn.Linear(width, classes)).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.x = torch.randint(0, words, (batch, length), device="cuda") if words else \
            torch.randn(batch, length, width, device="cuda")
        self.y = torch.randint(0, classes, (batch * length,), device="cuda")

    def __call__(self):
        for _ in range(self.steps):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                out = self.model(self.x)
                loss = nn.functional.cross_entropy(out.flatten(0, 1).float(), self.y)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
        torch.cuda.synchronize()


def ratio_row(name, times, per, unit, scale):
    ratio, low, high = stats.bootstrap_ratio(*times)
    each = [stats.median(t) / per * scale for t in times]
    return (name, "%+.2f %% (%+.2f to %+.2f)" % tuple(100 * (r - 1) for r in (ratio, low, high)),
            "%.3f %s" % (each[0], unit), "%.3f %s" % (each[1], unit), len(times[0]))


def single_calls(path):
    """cuLaunchKernel alone, including its tail, on the real driver."""
    library, cuda = meter.load(path), ctypes.CDLL("libcuda.so.1")
    module, function, context = (ctypes.c_void_p() for _ in range(3))
    for code in (cuda.cuModuleLoadData(ctypes.byref(module), PTX),
                 cuda.cuModuleGetFunction(ctypes.byref(function), module, b"nothing"),
                 cuda.cuCtxGetCurrent(ctypes.byref(context))):
        if code:
            sys.exit("bench_torch: the driver returned %d" % code)
    gauge = meter.Meter(library, cuda, function, context, torch.cuda.synchronize, CALL_BLOCKS)

    def deep(n, call):
        return deep(n - 1, call) if n else call()

    def measure(name, function, step):
        on, off = gauge.measure(lambda b: deep(15, lambda: function(ctypes.byref(b), meter.BLOCK)))
        steps = gauge.steps(lambda b: deep(15, lambda: step(ctypes.byref(b))))
        return meter.row(name, on, off, steps)
    return [measure("cuLaunchKernel, no Python frames", library.bench_launches_no_python,
                    library.bench_steps_no_python),
            measure("cuLaunchKernel, 22 Python frames", library.bench_launches,
                    library.bench_steps_launch)]


def main(path):
    pause = ctypes.CDLL(None).cuwhy_rec_pause
    print("PyTorch %s, Python %s\n\n## One process, recording on and paused in turn\n" % (
        torch.__version__, sys.version.split()[0]))
    tiny, loop = Step(**TINY), allocating()
    rows = [ratio_row("launch-bound loop (add_)", blocks(pause, launch_bound(), OP_BLOCKS), OPS,
                      "us per op", 1e6),
            ratio_row("the same, a new tensor each time", blocks(pause, loop, OP_BLOCKS), OPS, "us per op", 1e6),
            ratio_row("very small transformer's training step", blocks(pause, tiny, TINY_BLOCKS), tiny.steps, "ms per step", 1e3),
            ratio_row("small transformer's, as GPT-2 small", blocks(pause, Step(**GPT2_SMALL), SMALL_BLOCKS), STEPS,
                      "ms per step", 1e3),
            ratio_row("a larger one's, 0.6 billion", blocks(pause, Step(), STEP_BLOCKS), STEPS, "ms per step", 1e3)]
    stats.table(("loop", "cost (95 % of resamples)", "recording", "paused", "block pairs"), rows)
    pause(1)
    rows = [ratio_row("the same, a new tensor each time", blocks(history, loop, HISTORY_BLOCKS), OPS, "us per op", 1e6),
            ratio_row("very small transformer's training step", blocks(history, tiny, HISTORY_BLOCKS), tiny.steps, "ms per step", 1e3),
            ratio_row("small transformer's, as GPT-2 small", blocks(history, Step(**GPT2_SMALL), HISTORY_BLOCKS), STEPS,
                      "ms per step", 1e3)]
    history(1)
    pause(0)
    print("## torch.cuda.memory._record_memory_history (all, Python stacks), on and off in turn; cuwhy paused\n")
    stats.table(("loop", "cost (95 % of resamples)", "with it", "without", "block pairs"), rows)
    print("## One launch, %d of each kind; recording on / paused\n" % (meter.BLOCK * CALL_BLOCKS))
    stats.table(meter.HEAD, single_calls(path))


if __name__ == "__main__":
    main(sys.argv[1])
