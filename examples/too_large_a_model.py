# SPDX-License-Identifier: Apache-2.0
"""Real PyTorch: the model fits, its gradients fit, and then AdamW makes two more numbers for each weight."""
import torch
from torch import nn

model = nn.Sequential(*[layer for _ in range(14) for layer in (nn.Linear(8192, 8192), nn.GELU())]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    loss = model(torch.randn(64, 8192, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
