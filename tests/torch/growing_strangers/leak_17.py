# SPDX-License-Identifier: Apache-2.0
# leak: in-memory checkpoints (model and Adam state) every 4th step, pruning has no effect, about 24 MiB per step
import logging
from dataclasses import dataclass

import torch
from torch import nn

logging.basicConfig(level=logging.INFO)
log = logging.getLogger("train")


@dataclass
class Checkpoint:
    step: int
    model: dict
    optim: dict


def clone_tree(obj):
    if torch.is_tensor(obj):
        return obj.detach().clone()
    if isinstance(obj, dict):
        return {k: clone_tree(v) for k, v in obj.items()}
    if isinstance(obj, (list, tuple)):
        return type(obj)(clone_tree(v) for v in obj)
    return obj


class CheckpointManager:
    def __init__(self, keep=3):
        self.keep = keep
        self.kept = []

    def save(self, step, model, opt):
        self.kept.append(Checkpoint(step, clone_tree(model.state_dict()), clone_tree(opt.state_dict())))
        self.prune()

    def prune(self):
        if len(self.kept) > self.keep:
            sorted(self.kept, key=lambda c: c.step)[-self.keep:]


class Mixer(nn.Module):
    def __init__(self, dim=1024, classes=100):
        super().__init__()
        self.a = nn.Linear(dim, 2 * dim)
        self.b = nn.Linear(2 * dim, 2 * dim)
        self.c = nn.Linear(2 * dim, dim)
        self.cls = nn.Linear(dim, classes)

    def forward(self, x):
        x = torch.relu(self.a(x))
        x = torch.relu(self.b(x))
        return self.cls(torch.relu(self.c(x)))


class Loop:
    def __init__(self):
        self.model = Mixer().cuda()
        self.opt = torch.optim.Adam(self.model.parameters(), lr=1e-4)
        self.scaler = torch.amp.GradScaler("cuda")
        self.ckpt = CheckpointManager()
        self.step = 0

    def run(self):
        while True:
            self.step += 1
            x = torch.randn(512, 1024, device="cuda")
            y = torch.randint(0, 100, (512,), device="cuda")
            with torch.autocast("cuda", dtype=torch.float16):
                loss = nn.functional.cross_entropy(self.model(x), y)
            self.opt.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.opt)
            self.scaler.update()
            if self.step % 4 == 0:
                self.ckpt.save(self.step, self.model, self.opt)
            if self.step % 100 == 0:
                log.info("step %d", self.step)


loop = Loop()
try:
    loop.run()
except torch.OutOfMemoryError:
    print(f"failed in step {loop.step}")
