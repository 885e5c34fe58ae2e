# SPDX-License-Identifier: Apache-2.0
# The gradient of relu needs its result, which is changed in place before backward.
# expect: cause=autograd-inplace-modified certainty=certain exit=1
# needs: torch
import torch

x = torch.randn(64, 64, device="cuda")
w = torch.randn(64, 64, device="cuda", requires_grad=True)
y = (x @ w).relu()
scale = y.detach().mean()
y += 1  # <- here
loss = (y * scale).sum()
loss.backward()
