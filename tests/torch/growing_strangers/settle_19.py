# SPDX-License-Identifier: Apache-2.0
# settles: the last 3 checkpoints (model and optimizer state) are kept, one every 10 steps, after about step 40
import copy
from collections import deque

import torch
from torch import nn


class LastCheckpoints:
    def __init__(self, keep=3):
        self.kept = deque()
        self.keep = keep

    def save(self, step, model, opt):
        self.kept.append(
            {"step": step, "model": copy.deepcopy(model.state_dict()), "opt": copy.deepcopy(opt.state_dict())}
        )
        if len(self.kept) > self.keep:
            self.kept.popleft()


class Forecaster(nn.Module):
    def __init__(self, features=128, hidden=1024, horizon=24):
        super().__init__()
        self.gru = nn.GRU(features, hidden, num_layers=2, batch_first=True)
        self.out = nn.Sequential(nn.Linear(hidden, 2 * hidden), nn.ReLU(), nn.Linear(2 * hidden, horizon))

    def forward(self, x):
        _, h = self.gru(x)
        return self.out(h[-1])


class Engine:
    def __init__(self):
        self.handlers = {"step": [], "start": []}
        self.n = 0

    def on(self, event):
        def add(fn):
            self.handlers[event].append(fn)
            return fn
        return add

    def fire(self, event):
        for fn in self.handlers[event]:
            fn(self)

    def run(self, train):
        self.fire("start")
        while True:
            self.n += 1
            self.last = train()
            self.fire("step")


engine = Engine()


def main():
    model = Forecaster().to("cuda")
    opt = torch.optim.NAdam(model.parameters(), lr=1e-3)
    ckpt = LastCheckpoints()

    def train():
        x = torch.randn(64, 96, 128, device="cuda")
        y = torch.randn(64, 24, device="cuda")
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    @engine.on("step")
    def checkpoint(e):
        if e.n % 10 == 0:
            ckpt.save(e.n, model, opt)

    @engine.on("step")
    def show(e):
        if e.n % 50 == 0:
            print(f"step {e.n}: {e.last:.4f}")

    engine.run(train)


try:
    main()
except torch.OutOfMemoryError:
    print(f"failed in step {engine.n}")
