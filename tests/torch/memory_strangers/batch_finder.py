# SPDX-License-Identifier: Apache-2.0
# label: none
"""Looks for the largest batch by halving it whenever memory runs out, then trains."""
import torch
import torch.nn as nn


def step(model, optimizer, batch):
    x = torch.randn(batch, 2048, device="cuda")
    loss = (model(x) - x).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def largest_batch(model, optimizer, batch):
    while batch:
        try:
            step(model, optimizer, batch)
            return batch
        except torch.OutOfMemoryError:
            optimizer.zero_grad(set_to_none=True)
        batch //= 2
    raise RuntimeError("not even one sample fits")


model = nn.Sequential(*[nn.Sequential(nn.Linear(2048, 2048), nn.GELU()) for _ in range(6)]).cuda()
optimizer = torch.optim.Adam(model.parameters())
batch = largest_batch(model, optimizer, 1048576)  #@scale
for _ in range(5):
    step(model, optimizer, batch // 2)
print("trained with", batch // 2)
