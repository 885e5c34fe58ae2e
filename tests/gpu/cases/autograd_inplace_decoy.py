# SPDX-License-Identifier: Apache-2.0
# Changes of tensors that no gradient needs are not blamed: of a sum, and of an operand of a sum.
# expect: cause=autograd-inplace-modified certainty=certain exit=1
# needs: torch
import torch

x = torch.randn(64, 64, device="cuda")
w = torch.randn(64, 64, device="cuda", requires_grad=True)
bias = torch.ones(64, 64, device="cuda")
z = (x @ w) + bias  # <- here
bias += 1
z += 1
x[:, 3] = 0
z.sum().backward()
