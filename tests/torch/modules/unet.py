# SPDX-License-Identifier: Apache-2.0
"""A UNet, of whose parts some are checkpointed, in half precision."""
import truth
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Part(nn.Module):
    def __init__(self, inside, out):
        super().__init__()
        self.conv, self.norm, self.act = nn.Conv2d(inside, out, 3, padding=1), nn.GroupNorm(8, out), nn.SiLU()

    def forward(self, x):
        return self.act(self.norm(self.conv(x)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([Part(3, 32), Part(32, 64), Part(64, 128)])
        self.up = nn.ModuleList([Part(192, 64), Part(96, 32)])
        self.out = nn.Conv2d(32, 3, 1)
        self.pool, self.rise = nn.MaxPool2d(2), nn.Upsample(scale_factor=2)

    def forward(self, x):
        kept = []
        for number, part in enumerate(self.down):
            x = checkpoint(part, x, use_reentrant=False) if number else part(x)
            kept.append(x)
            x = self.pool(x) if number < 2 else x
        for part, beside in zip(self.up, kept[1::-1]):
            x = part(torch.cat([self.rise(x), beside], 1))
        return self.out(x)


model = UNet().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    optimizer.zero_grad()
    with torch.autocast("cuda", torch.float16):
        model(torch.randn(4, 3, 64, 64, device="cuda")).sum().backward()
    optimizer.step()
kept = model(torch.randn(4, 3, 64, 64, device="cuda"))
truth.tell(model)
