# SPDX-License-Identifier: Apache-2.0
# Each turn of the loop adds the result of one pass, which has no graph.
# expect: cause=oom-growth certainty=certain,likely exit=1
# needs: torch
import torch
from torch import nn

model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda()
cache = {}


@torch.no_grad()
def features(number, x):
    cache[number] = model(x)
    return cache[number]


for number in range(1000):
    features(number, torch.randn(2048, 1024, 1024, device="cuda"))
