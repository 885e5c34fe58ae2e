# SPDX-License-Identifier: Apache-2.0
# label: none
"""Trains in mixed precision, with a scaler."""
import torch
import torch.nn as nn
import torch.nn.functional as F

model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda")
losses, total = [], 0.0
for step in range(60):
    x, y = torch.randn(16384, 1024, device="cuda"), torch.randint(0, 10, (16384,), device="cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    losses.append(loss)
    total += loss.detach()
print(len(losses), float(total) / len(losses))
