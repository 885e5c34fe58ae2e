# SPDX-License-Identifier: Apache-2.0
# Twelve layers of one kind, in a loop of the model's own and in PyTorch's: one pass that does not fit, and not twelve passes that are kept.
# expect: cause=oom-capacity certainty=certain,likely exit=1
# needs: torch
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width=1024):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 16, 4 * width, batch_first=True), 12)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(12))

    def forward(self, x):
        x = self.encoder(x)
        for block in self.blocks:
            x = x + block(x)
        return x


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for batch in (8, 8, 2048):
    model(torch.randn(batch, 512, 1024, device="cuda")).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
