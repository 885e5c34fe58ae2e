# SPDX-License-Identifier: Apache-2.0
"""A training whose memory grows with the batch: python3 train.py --batch-size 16384."""
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16384)
batch_size = parser.parse_args().batch_size

layers = [layer for _ in range(12) for layer in (nn.Linear(4096, 4096), nn.ReLU())]
model = nn.Sequential(*layers).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(20):
    features = torch.randn(batch_size, 4096, device="cuda")
    loss = (model(features) - features).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
