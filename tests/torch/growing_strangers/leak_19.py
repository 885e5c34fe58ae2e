# SPDX-License-Identifier: Apache-2.0
# leak: history of step records keeps all outputs of a multi-task net (bf16), about 24 MiB per step
from dataclasses import dataclass, field
from typing import Dict, List

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class StepRecord:
    step: int
    losses: Dict[str, float]
    outputs: Dict[str, torch.Tensor]


@dataclass
class History:
    records: List[StepRecord] = field(default_factory=list)

    def mean(self, name, last=20):
        vals = [r.losses[name] for r in self.records[-last:]]
        return sum(vals) / max(1, len(vals))


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, 24, 3, padding=1), nn.GroupNorm(4, 24), nn.SiLU(),
            nn.Conv2d(24, 24, 3, padding=1), nn.GroupNorm(4, 24), nn.SiLU(),
        )
        self.heads = nn.ModuleDict({
            "seg": nn.Conv2d(24, 8, 1),
            "normals": nn.Conv2d(24, 3, 1),
            "depth": nn.Conv2d(24, 1, 1),
        })

    def forward(self, x):
        f = self.trunk(x)
        return {k: h(f) for k, h in self.heads.items()}


class MultiTaskTrainer:
    weights = {"seg": 1.0, "normals": 0.5, "depth": 0.2}

    def __init__(self, batch=16, size=256):
        self.batch, self.size = batch, size
        self.net = MultiTask().to("cuda")
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
        self.history = History()
        self.step = 0

    def targets(self):
        b, s = self.batch, self.size
        return {
            "seg": torch.randint(0, 8, (b, s, s), device="cuda"),
            "normals": F.normalize(torch.randn(b, 3, s, s, device="cuda"), dim=1),
            "depth": torch.rand(b, 1, s, s, device="cuda"),
        }

    def losses(self, out, tgt):
        return {
            "seg": F.cross_entropy(out["seg"].float(), tgt["seg"]),
            "normals": 1 - F.cosine_similarity(out["normals"].float(), tgt["normals"], dim=1).mean(),
            "depth": F.l1_loss(out["depth"].float(), tgt["depth"]),
        }

    def one(self):
        self.step += 1
        x = torch.rand(self.batch, 3, self.size, self.size, device="cuda")
        with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
            out = self.net(x)
        parts = self.losses(out, self.targets())
        total = sum(self.weights[k] * v for k, v in parts.items())
        self.opt.zero_grad()
        total.backward()
        self.opt.step()
        self.history.records.append(
            StepRecord(self.step, {k: v.item() for k, v in parts.items()}, {k: v.detach() for k, v in out.items()})
        )


if __name__ == "__main__":
    t = MultiTaskTrainer()
    try:
        while True:
            t.one()
            if t.step % 20 == 0:
                print(t.step, {k: round(t.history.mean(k), 4) for k in t.weights})
    except torch.OutOfMemoryError:
        print(f"failed in step {t.step}")
