# SPDX-License-Identifier: Apache-2.0
# What changes a tensor through .data is not counted: the line that does is not blamed for what another one did.
# expect: cause=autograd-inplace-modified certainty=certain exit=1
# needs: torch
import torch

w = torch.randn(32, 16, device="cuda", requires_grad=True)
y = w.sigmoid()  # <- here
y.data.mul_(2)
y[:, ::2] += 1
y.sum().backward()
