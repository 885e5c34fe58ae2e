# SPDX-License-Identifier: Apache-2.0
# label: growth
"""Image training with a small pool of loader threads that upload in advance."""
import argparse
import queue
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn as nn


class Prefetcher:
    def __init__(self, batch, size, workers):
        self.batch, self.size, self.workers = batch, size, workers
        self.ready = queue.Queue()
        self.pool = ThreadPoolExecutor(workers)

    def _load(self):
        images = torch.randn(self.batch, 3, self.size, self.size, device="cuda")
        labels = torch.randint(0, 10, (self.batch,), device="cuda")
        self.ready.put((images, labels))

    def refill(self):
        jobs = [self.pool.submit(self._load) for _ in range(self.workers)]  #@here
        for job in jobs:
            job.result()

    def next(self):
        self.refill()
        return self.ready.get()


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 7, stride=4, padding=3), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(2 * width, 10)

    def forward(self, x):
        return self.head(self.features(x))


class Meter:
    def __init__(self):
        self.total, self.n = 0.0, 0

    def add(self, v):
        self.total, self.n = self.total + v, self.n + 1

    @property
    def mean(self):
        return self.total / max(1, self.n)


def run(args):
    model = Net(32 if args.variant == "a" else 48).cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    feed = Prefetcher(max(1, int(64 * args.scale)), 384, workers=3)
    meter = Meter()
    for step in range(args.turns):
        x, y = feed.next()
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        meter.add(loss.item())
        print(step, round(meter.mean, 4), flush=True)


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--scale", type=float, default=1.0)
    cli.add_argument("--turns", type=int, default=60)
    cli.add_argument("--variant", choices=["a", "b"], default="a")
    run(cli.parse_args())
