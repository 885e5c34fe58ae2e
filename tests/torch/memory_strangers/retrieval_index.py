# SPDX-License-Identifier: Apache-2.0
# label: oom-growth
"""Metric learning that collects its embeddings for a search index, detached."""
import torch
import torch.nn as nn

BATCH = 1536  #@scale


class Embedder(nn.Module):
    def __init__(self, wide=12288):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(768, wide), nn.ReLU())
        self.classify = nn.Linear(wide, 100)

    def forward(self, x):
        z = self.trunk(x)  #@here
        return z, self.classify(z)


def train(steps=2000):
    model = Embedder().cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    index = {}
    for step in range(steps):
        x, y = torch.randn(BATCH, 768, device="cuda"), torch.randint(0, 100, (BATCH,), device="cuda")
        z, logits = model(x)  #@here
        loss = nn.functional.cross_entropy(logits, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        index[step] = z.detach()  #@here


train()
