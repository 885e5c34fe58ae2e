# SPDX-License-Identifier: Apache-2.0
# Training that keeps a validation loss of every step for a plot, and with it everything backward would need.
# expect: cause=oom-graph-retention certainty=certain,likely exit=1 here=16 culprit=16
# needs: torch
# alone
import torch
from torch import nn

layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
model = nn.Sequential(nn.TransformerEncoder(layer, 6), nn.Linear(512, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
history = []


def loss_of(x, y):
    return nn.functional.cross_entropy(model(x).mean(1), y)


def batch():
    return torch.randn(8, 256, 512, device="cuda"), torch.randint(10, (8,), device="cuda")


for step in range(10000):
    optimizer.zero_grad()
    loss_of(*batch()).backward()
    optimizer.step()
    history.append(loss_of(*batch()))
