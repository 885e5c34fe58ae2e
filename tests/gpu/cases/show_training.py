# SPDX-License-Identifier: Apache-2.0
# A training step, and a validation step with and without no_grad.
# expect-silent: exit=0
# needs: torch
# same-output
import torch
import torch.nn as nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(256, 32, device="cuda")
y = torch.randint(0, 4, (256,), device="cuda")
for step in range(5):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.isfinite().item(), model(x).requires_grad)
with torch.no_grad():
    print(model(x).requires_grad)
