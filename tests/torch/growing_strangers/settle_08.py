# SPDX-License-Identifier: Apache-2.0
# settles: layers are unfrozen one after the other, every 6 steps (gradients and Adam state come late), after about step 30
import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self, d=2304, depth=5):
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.GELU()) for _ in range(depth)])

    def forward(self, x):
        for l in self.layers:
            x = x + l(x)
        return x


class FineTune(nn.Module):
    def __init__(self, d=2304):
        super().__init__()
        self.backbone = Backbone(d)
        self.head = nn.Linear(d, 30)

    def forward(self, x):
        return self.head(self.backbone(x))


def freeze(module):
    for p in module.parameters():
        p.requires_grad = False


def unfreeze(module):
    for p in module.parameters():
        p.requires_grad = True


class GradualUnfreeze:
    def __init__(self, model, every=6):
        self.todo = list(model.backbone.layers)
        self.every = every
        freeze(model.backbone)

    def on_step(self, step):
        if step % self.every == 0 and self.todo:
            unfreeze(self.todo.pop())


def main():
    n = 0
    try:
        model = FineTune().to("cuda")
        schedule = GradualUnfreeze(model)
        opt = torch.optim.Adam(model.parameters(), lr=1e-4)
        while True:
            n += 1
            schedule.on_step(n)
            x = torch.randn(1024, 2304, device="cuda")
            y = torch.randint(0, 30, (1024,), device="cuda")
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if n % 100 == 0:
                print(f"{n}: {loss.item():.3f}")
    except torch.OutOfMemoryError:
        print(f"failed in step {n}")


main()
