# SPDX-License-Identifier: Apache-2.0
# label: oom-request-too-large oom-capacity asked
"""Active learning: picks the unlabeled samples that are farthest from the labeled ones (core set)."""
import torch
import torch.nn as nn

POOL, LABELED = 60000, 60000


class Embedder(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, dim))

    def forward(self, x):
        return nn.functional.normalize(self.net(x), dim=1)


@torch.no_grad()
def embed(model, count):
    model.eval()
    parts = []
    for start in range(0, count, 4096):
        parts.append(model(torch.randn(min(4096, count - start), 512, device="cuda")).cpu())
    return torch.cat(parts)


def core_set(pool, labeled, budget):
    distances = torch.cdist(pool.cuda(), labeled.cuda())  #@here
    nearest = distances.min(dim=1).values
    return nearest.topk(budget).indices


model = Embedder().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for cycle in range(3):
    for _ in range(20):
        a, b = torch.randn(256, 512, device="cuda"), torch.randn(256, 512, device="cuda")
        loss = (model(a) - model(b)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scale = 1  #@scale
    chosen = core_set(embed(model, int(POOL * scale ** 0.5)), embed(model, int(LABELED * scale ** 0.5)), 100)
    print(cycle, chosen.shape)
