# SPDX-License-Identifier: Apache-2.0
# The optimizer changes the weights before the second loss, which was computed with the old ones, goes backward.
# expect: cause=autograd-inplace-modified certainty=certain exit=1
# needs: torch
import torch
from torch import nn

model = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(8, 16, device="cuda")
first, second = model(x).sum(), model(x * 2).sum()  # <- here
first.backward()
optimizer.step()
second.backward()
