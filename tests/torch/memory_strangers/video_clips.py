# SPDX-License-Identifier: Apache-2.0
# label: oom-capacity asked
"""Action recognition with 3D convolutions on long clips."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

CLIPS = 80  #@scale
FRAMES, SIZE = 32, 112


class Stage(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv = nn.Conv3d(cin, cout, 3, stride=stride, padding=1, bias=False)
        self.norm = nn.BatchNorm3d(cout)
        self.conv2 = nn.Conv3d(cout, cout, 3, padding=1, bias=False)

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)))  #@forward
        return F.relu(self.conv2(x)) + x  #@forward


class C3D(nn.Module):
    def __init__(self, classes=400):
        super().__init__()
        self.stages = nn.ModuleList([Stage(3, 32, 1), Stage(32, 64, 2), Stage(64, 128, 2)])
        self.fc = nn.Linear(128, classes)

    def forward(self, clip):
        x = clip
        for number, stage in enumerate(self.stages):
            x = checkpoint(stage, x, use_reentrant=False) if number == 2 else stage(x)  #@forward
        return self.fc(x.mean((2, 3, 4)))  #@forward


model = C3D().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for iteration in range(10):
    clips = torch.rand(CLIPS, 3, FRAMES, SIZE, SIZE, device="cuda")
    loss = F.cross_entropy(model(clips), torch.randint(0, 400, (CLIPS,), device="cuda"))  #@forward
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
