# SPDX-License-Identifier: Apache-2.0
"""Healthy work for compare.py: 2,000 launches that wait for Python, and a small training step, block by block.

Prints a line for each kind as soon as it is measured: its name and the seconds of every block.
"""
import time

import torch
import torch.nn as nn

LAUNCHES, STEPS = 2000, 10


def launches():
    x = torch.zeros(1024, device="cuda")

    def run():
        for _ in range(LAUNCHES):
            x.add_(1)
        torch.cuda.synchronize()
    return run


def training():
    """A multilayer perceptron with 6 million parameters: forward, backward, Adam."""
    model = nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x, y = torch.randn(256, 1024, device="cuda"), torch.randint(0, 10, (256,), device="cuda")

    def run():
        for _ in range(STEPS):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        torch.cuda.synchronize()
    return run


def measure(run, blocks, seconds):
    """Blocks until enough or until the time is up, two at least; the first two warm up."""
    run()
    run()
    times, end = [], time.monotonic() + seconds
    while len(times) < 2 or (len(times) < blocks and time.monotonic() < end):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return times


def main():
    for name, make in (("launches", launches), ("training", training)):
        print(name, *("%.6f" % t for t in measure(make(), 60, 8)), flush=True)


if __name__ == "__main__":
    main()
