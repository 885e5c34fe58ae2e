# SPDX-License-Identifier: Apache-2.0
# label: graph-retention
"""Self-distillation without labels; teacher follows the student as an EMA."""
import argparse
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F


class MixerBlock(nn.Module):
    def __init__(self, d, ratio):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.up = nn.Linear(d, ratio * d)
        self.down = nn.Linear(ratio * d, d)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Encoder(nn.Module):
    def __init__(self, d=384, depth=2, ratio=4, out=4096):
        super().__init__()
        self.patch = nn.Linear(768, d)
        self.blocks = nn.ModuleList(MixerBlock(d, ratio) for _ in range(depth))
        self.proj = nn.Linear(d, out)

    def forward(self, x):
        x = self.patch(x)
        for b in self.blocks:
            x = b(x)
        return self.proj(x.mean(1))


class DinoLoss(nn.Module):
    def __init__(self, out, t_student=0.1, t_teacher=0.04, momentum=0.9):
        super().__init__()
        self.ts, self.tt, self.m = t_student, t_teacher, momentum
        self.center = torch.zeros(1, out, device="cuda")
        self.queue = []

    def forward(self, student, teacher):
        goal = F.softmax((teacher.detach() - self.center.detach()) / self.tt, dim=-1)
        loss = -(goal * F.log_softmax(student / self.ts, dim=-1)).sum(-1).mean()
        self.center = self.center * self.m + teacher.mean(0, keepdim=True) * (1 - self.m)  #@here
        self.queue = (self.queue + [teacher.detach().mean(0)])[-32:]
        return loss


@torch.no_grad()
def ema(student, teacher, m):
    for s, t in zip(student.parameters(), teacher.parameters()):
        t.lerp_(s, 1 - m)


def crops(batch, device):
    return torch.randn(batch, 196, 768, device=device)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=60)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    args = ap.parse_args()
    out = 4096 if args.variant == "a" else 2048
    student = Encoder(out=out).cuda()
    teacher = copy.deepcopy(student)
    criterion = DinoLoss(out)
    opt = torch.optim.AdamW(student.parameters(), lr=5e-4)
    batch = max(1, int(64 * args.scale))
    for it in range(args.turns):
        loss = criterion(student(crops(batch, "cuda")), teacher(crops(batch, "cuda")))
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema(student, teacher, 0.996)
        print(f"{it:3d} {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
