# SPDX-License-Identifier: Apache-2.0
# settles: deque of the last 20 outputs is full, after about step 21
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

net = nn.Sequential(nn.Linear(256, 768), nn.ReLU(), nn.Linear(768, 1024)).to("cuda")
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
recent = deque(maxlen=20)

step = 0
try:
    while True:
        step += 1
        x = torch.randn(8192, 256, device="cuda")
        y = torch.randint(0, 1024, (8192,), device="cuda")
        out = net(x)
        loss = F.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        recent.append(out.detach())
        if step % 20 == 0:
            drift = (recent[-1] - recent[0]).abs().mean().item()
            print(f"step {step} loss {loss.item():.4f} drift {drift:.4f}")
except torch.OutOfMemoryError:
    print(f"failed in step {step}")
