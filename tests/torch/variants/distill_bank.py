# SPDX-License-Identifier: Apache-2.0
# label: graph-retention
"""Relational distillation: student similarities against a bank of teacher features."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvNet(nn.Module):
    def __init__(self, ch, depth, dim):
        super().__init__()
        self.stem = nn.Conv2d(3, ch, 3, padding=1)
        self.body = nn.ModuleList(nn.Conv2d(ch, ch, 3, padding=1) for _ in range(depth))
        self.head = nn.Linear(ch, dim)

    def forward(self, x):
        x = F.relu(self.stem(x))
        for conv in self.body:
            x = F.relu(conv(x))
        return self.head(x.mean((2, 3)))


class Bank:
    """Fixed number of slots, oldest batch is overwritten."""

    def __init__(self, slots):
        self.slots = [None] * slots
        self.at = 0

    def put(self, feats):
        self.slots[self.at % len(self.slots)] = feats
        self.at += 1

    def all(self):
        return torch.cat([s for s in self.slots if s is not None])


class Distiller:
    def __init__(self, teacher, student, bank):
        self.teacher, self.student, self.bank = teacher.eval(), student, bank
        self.opt = torch.optim.SGD(student.parameters(), lr=0.02, momentum=0.9)

    def step(self, x):
        wanted = F.normalize(self.teacher(x), dim=-1)
        self.bank.put(wanted)  #@here
        anchors = self.bank.all().detach()
        got = F.normalize(self.student(x), dim=-1)
        p = F.log_softmax(got @ anchors.t() / 0.1, -1)
        q = F.softmax(wanted.detach() @ anchors.t() / 0.1, -1)
        loss = F.kl_div(p, q, reduction="batchmean")
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=60)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    o = ap.parse_args()
    dim = 128 if o.variant == "a" else 256
    teacher = ConvNet(64, 5, dim).cuda()
    student = ConvNet(32, 2, dim).cuda()
    job = Distiller(teacher, student, Bank(slots=32))
    batch = max(1, int(64 * o.scale))
    for i in range(o.turns):
        images = torch.randn(batch, 3, 64, 64, device="cuda")
        print(i, job.step(images), flush=True)
