# SPDX-License-Identifier: Apache-2.0
# leak: a new Adam at every warm restart (each 5 steps), the old ones kept with their state, about 19 MiB per step
import torch
import torch.nn as nn


class WarmRestarts:
    def __init__(self, params, period=5, lr=1e-3):
        self.params = list(params)
        self.period = period
        self.lr = lr
        self.retired = []
        self.count = 0
        self.current = self._fresh()

    def _fresh(self):
        return torch.optim.Adam(self.params, lr=self.lr)

    def step(self):
        if self.count and self.count % self.period == 0:
            self.retired.append(self.current)  # in case we want to go back
            self.current = self._fresh()
        self.count += 1
        phase = (self.count - 1) % self.period
        for g in self.current.param_groups:
            g["lr"] = self.lr * (1 - phase / self.period)
        self.current.step()

    def zero_grad(self):
        self.current.zero_grad()


def net():
    layers, last = [], 1024
    for width in (2048, 2048, 2048, 1024):
        layers += [nn.Linear(last, width), nn.SiLU()]
        last = width
    return nn.Sequential(*layers[:-1])


STEP = 0


def main():
    global STEP
    model = net().to("cuda")
    opt = WarmRestarts(model.parameters())
    teacher = torch.randn(1024, 1024, device="cuda") / 32
    while True:
        STEP += 1
        x = torch.randn(256, 1024, device="cuda")
        loss = nn.functional.mse_loss(model(x), x @ teacher)
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    try:
        main()
    except torch.OutOfMemoryError:
        print(f"failed in step {STEP}")
