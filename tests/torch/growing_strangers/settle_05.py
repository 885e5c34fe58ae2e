# SPDX-License-Identifier: Apache-2.0
# settles: EMA copy of the model is made at step 15, after about step 15
import copy
import torch
from torch import nn


class BigMLP(nn.Module):
    def __init__(self, width=3072):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1024, width), nn.GELU(), nn.LayerNorm(width),
            nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width),
            nn.Linear(width, width), nn.GELU(),
            nn.Linear(width, 256),
        )

    def forward(self, x):
        return self.net(x)


class EmaCallback:
    def __init__(self, start=15, decay=0.995):
        self.start, self.decay = start, decay
        self.shadow = None

    @torch.no_grad()
    def __call__(self, step, model):
        if step < self.start:
            return
        if self.shadow is None:
            self.shadow = copy.deepcopy(model).eval()
            for p in self.shadow.parameters():
                p.requires_grad_(False)
            return
        torch._foreach_lerp_(list(self.shadow.parameters()), list(model.parameters()), 1 - self.decay)


def train(progress, callbacks):
    model = BigMLP().to("cuda")
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    while True:
        progress["step"] += 1
        x = torch.randn(512, 1024, device="cuda")
        y = torch.randint(0, 256, (512,), device="cuda")
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        for cb in callbacks:
            cb(progress["step"], model)


progress = {"step": 0}
try:
    train(progress, [EmaCallback()])
except torch.OutOfMemoryError:
    print(f"failed in step {progress['step']}")
