# SPDX-License-Identifier: Apache-2.0
# leak: deep copies of the EMA model kept every second step, about 20 MiB per step
import copy
import torch
import torch.nn as nn


class Ema:
    def __init__(self, model, decay=0.99):
        self.decay = decay
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.snapshots = {}

    @torch.no_grad()
    def update(self, model, step):
        for e, p in zip(self.model.parameters(), model.parameters()):
            e.lerp_(p, 1 - self.decay)
        if step % 2 == 0:
            self.snapshots[step] = copy.deepcopy(self.model)


class Denoiser(nn.Module):
    def __init__(self, width=1600):
        super().__init__()
        self.inp = nn.Linear(784, width)
        self.blocks = nn.ModuleList([nn.Linear(width, width) for _ in range(3)])
        self.out = nn.Linear(width, 784)

    def forward(self, x):
        h = torch.tanh(self.inp(x))
        for b in self.blocks:
            h = h + torch.tanh(b(h))
        return self.out(h)


counter = 0


def run():
    global counter
    model = Denoiser().cuda()
    ema = Ema(model)
    opt = torch.optim.RMSprop(model.parameters(), lr=1e-4)
    while True:
        for _ in range(100):
            counter += 1
            clean = torch.rand(256, 784, device="cuda")
            noisy = clean + 0.3 * torch.randn_like(clean)
            loss = ((model(noisy) - clean) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            ema.update(model, counter)
        print("done", counter, "steps")


try:
    run()
except torch.OutOfMemoryError:
    print(f"failed in step {counter}")
