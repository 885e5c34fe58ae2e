# SPDX-License-Identifier: Apache-2.0
# A training loop whose batch doubles until the activations no longer fit.
# expect: cause=oom-capacity exit=1
# needs: torch
# alone
import torch
import torch.nn as nn


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4096, 4096, bias=False) for _ in range(24))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)  # <- here
            x = x.relu()  # <- here
        return x


model = Wide().cuda().to(torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
batch = 1 << 18
while True:
    loss = model(torch.zeros(batch, 4096, device="cuda", dtype=torch.bfloat16)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    del loss
    batch *= 2
