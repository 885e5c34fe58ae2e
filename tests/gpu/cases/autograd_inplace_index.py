# SPDX-License-Identifier: Apache-2.0
# A row of what exp computed is set to zero; its gradient is its result.
# expect: cause=autograd-inplace-modified certainty=certain exit=1
# needs: torch
import torch


def mask_first(y):
    y[0] = 0  # <- here
    return y


w = torch.randn(32, 16, device="cuda", requires_grad=True)
for step in range(3):
    y = w.exp()
    loss = mask_first(y).sum()
    loss.backward()
