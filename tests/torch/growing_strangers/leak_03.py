# SPDX-License-Identifier: Apache-2.0
# leak: validation loss summed up with its graph (no no_grad, never backward), about 24 MiB per step
import sys

import torch
import torch.nn as nn

DEV = torch.device("cuda")
EVAL_EVERY = 3


def build():
    return nn.Sequential(
        nn.Linear(256, 1024), nn.ReLU(),
        nn.Linear(1024, 1024), nn.ReLU(),
        nn.Linear(1024, 1),
    ).to(DEV)


def get_batch(n):
    x = torch.randn(n, 256, device=DEV)
    return x, x.sum(1, keepdim=True).tanh()


class Run:
    def __init__(self):
        self.net = build()
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=3e-4, weight_decay=0.01)
        self.mse = nn.MSELoss()
        self.val_total = 0.0
        self.val_count = 0
        self.n = 0

    def train_one(self):
        self.n += 1
        x, y = get_batch(1024)
        loss = self.mse(self.net(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

    def validate(self):
        self.net.eval()
        x, y = get_batch(8192)
        self.val_total += self.mse(self.net(x), y)
        self.val_count += 1
        self.net.train()
        return float(self.val_total) / self.val_count

    def loop(self):
        epoch = 0
        while True:
            epoch += 1
            for _ in range(EVAL_EVERY):
                self.train_one()
            val = self.validate()
            if epoch % 10 == 0:
                print(f"epoch {epoch}: mean val {val:.5f}")


def main():
    run = Run()
    try:
        run.loop()
    except torch.OutOfMemoryError:
        print(f"failed in step {run.n}")
        sys.exit(0)


main()
