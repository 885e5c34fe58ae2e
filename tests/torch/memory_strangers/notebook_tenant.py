# SPDX-License-Identifier: Apache-2.0
# label: oom-memory-fraction asked
"""Training on a shared notebook server."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tenant:
    SHARES = {"free": 0.25, "paid": 0.9}

    def __init__(self, plan):
        self.plan = plan

    def __enter__(self):
        torch.cuda.set_per_process_memory_fraction(self.SHARES[self.plan], 0)  #@here
        return self

    def __exit__(self, *_):
        torch.cuda.set_per_process_memory_fraction(1.0, 0)


def train(batch):
    net = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 100)).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(10):
        logits = net(torch.randn(batch, 1024, device="cuda"))  #@forward
        loss = F.cross_entropy(logits, torch.randint(0, 100, (batch,), device="cuda"))  #@forward
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


with Tenant("free"):  #@here
    train(131072)  #@scale
