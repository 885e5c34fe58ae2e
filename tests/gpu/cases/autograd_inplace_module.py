# SPDX-License-Identifier: Apache-2.0
# An activation in place overwrites the result of sigmoid, which backward needs.
# expect: cause=autograd-inplace-modified certainty=certain exit=1
# needs: torch
import torch
from torch import nn

model = nn.Sequential(nn.Linear(16, 16), nn.Sigmoid(), nn.ReLU(inplace=True), nn.Linear(16, 1)).cuda()
loss = model(torch.randn(8, 16, device="cuda")).sum()  # <- here
loss.backward()
