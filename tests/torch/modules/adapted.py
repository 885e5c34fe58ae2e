# SPDX-License-Identifier: Apache-2.0
"""Low-rank adapters, written by hand: layers of a model are replaced by ones that have them, after it was used."""
import truth
import torch
from torch import nn


class Adapter(nn.Module):
    def __init__(self, base, rank=8):
        super().__init__()
        self.base_layer = base.requires_grad_(False)
        self.lora_A = nn.Linear(base.in_features, rank, bias=False, device="cuda")
        self.lora_B = nn.Linear(rank, base.out_features, bias=False, device="cuda")

    def forward(self, x):
        return self.base_layer(x) + self.lora_B(self.lora_A(x))


class Adapted(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.base_model = model
        for block in model:
            block[0] = Adapter(block[0])

    def forward(self, x):
        return self.base_model(x)


base = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.GELU()) for _ in range(4)]).cuda()
with torch.no_grad():
    base(torch.randn(64, 512, device="cuda"))
model = Adapted(base)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
for _ in range(4):
    optimizer.zero_grad()
    model(torch.randn(64, 512, device="cuda")).sum().backward()
    optimizer.step()
kept = model(torch.randn(64, 512, device="cuda"))
truth.tell(model, parameters=False)     # a layer is called what it was called before the adapters had it
