# SPDX-License-Identifier: Apache-2.0
# label: oom-growth
"""Mixup training."""
import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES, BATCH = 1000, 4096  #@scale


class TopK:
    """Accuracy over everything that was seen since reset()."""

    def __init__(self, k):
        self.k = k
        self.reset()

    def reset(self):
        self.preds, self.targets = [], []

    def update(self, preds, targets):
        self.preds.append(preds.detach())  #@here
        self.targets.append(targets.detach())

    def compute(self, last=4):
        hits = [(p.topk(self.k, 1).indices == t[:, None]).any(1).float().mean() for p, t in zip(self.preds[-last:], self.targets[-last:])]
        return sum(h.item() for h in hits) / len(hits)


def mixup(x, y, alpha=0.2):
    lam = float(torch.distributions.Beta(alpha, alpha).sample())
    perm = torch.randperm(x.shape[0], device=x.device)
    return lam * x + (1 - lam) * x[perm], y, y[perm], lam


net = nn.Sequential(nn.Linear(512, 1024), nn.BatchNorm1d(1024), nn.ReLU(), nn.Linear(1024, CLASSES)).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 100)
accuracy = TopK(5)
for epoch in range(100):
    for _ in range(20):
        x, y = torch.randn(BATCH, 512, device="cuda"), torch.randint(0, CLASSES, (BATCH,), device="cuda")
        mixed, ya, yb, lam = mixup(x, y)
        out = net(mixed)  #@here
        loss = lam * F.cross_entropy(out, ya) + (1 - lam) * F.cross_entropy(out, yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        accuracy.update(out, y)  #@here
    sched.step()
    print(epoch, accuracy.compute())
