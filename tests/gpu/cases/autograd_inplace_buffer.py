# SPDX-License-Identifier: Apache-2.0
# A mask that the product has saved is cleared for the next batch too early.
# expect: cause=autograd-inplace-modified certainty=certain exit=1
# needs: torch
import torch

mask = torch.ones(256, device="cuda")
w = torch.randn(256, device="cuda", requires_grad=True)
y = w * mask
mask.zero_()  # <- here
y.sum().backward()
