# SPDX-License-Identifier: Apache-2.0
# label: growth
"""Patch-level contrastive pre-training with a feature bank."""
import argparse
import random
import torch
import torch.nn as nn
import torch.nn.functional as F


class PatchEncoder(nn.Module):
    def __init__(self, out_dim, hidden):
        super().__init__()
        self.embed = nn.Linear(3 * 16 * 16, hidden)
        self.fc = nn.Linear(hidden, out_dim)

    def forward(self, patches):
        return F.normalize(self.fc(F.relu(self.embed(patches))), dim=-1)


class FeatureBank:
    def __init__(self, dim, size):
        self.size = size
        self.features = torch.zeros(0, dim, device="cuda")

    @torch.no_grad()
    def enqueue(self, keys):
        self.features = torch.cat([self.features, keys.flatten(0, 1)])  #@here

    def negatives(self, k):
        start = random.randrange(0, max(1, self.features.shape[0] - k))
        return self.features[start:start + k]


@torch.no_grad()
def momentum_update(student, teacher, m=0.99):
    for s, t in zip(student.parameters(), teacher.parameters()):
        t.mul_(m).add_(s, alpha=1 - m)


def info_nce(q, k, negatives, tau=0.07):
    q, k = q.mean(1), k.mean(1)
    pos = (q * k).sum(-1, keepdim=True)
    neg = q @ negatives.t()
    logits = torch.cat([pos, neg], 1) / tau
    return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device=q.device))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=60)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    args = ap.parse_args()
    dim = 1024
    hidden = 512 if args.variant == "a" else 768
    student, teacher = PatchEncoder(dim, hidden).cuda(), PatchEncoder(dim, hidden).cuda()
    teacher.load_state_dict(student.state_dict())
    teacher.requires_grad_(False)
    bank = FeatureBank(dim, size=65536)
    opt = torch.optim.AdamW(student.parameters(), lr=1e-3)
    batch = max(1, int(128 * args.scale))
    for it in range(args.turns):
        view1 = torch.randn(batch, 196, 768, device="cuda")
        view2 = torch.randn(batch, 196, 768, device="cuda")
        q = student(view1)
        with torch.no_grad():
            k = teacher(view2)
        bank.enqueue(k)
        loss = info_nce(q, k, bank.negatives(4096))
        opt.zero_grad()
        loss.backward()
        opt.step()
        momentum_update(student, teacher)
        print(it, loss.item(), flush=True)


main()
