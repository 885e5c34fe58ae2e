# SPDX-License-Identifier: Apache-2.0
# The tensor is changed at two lines: both are changes that backward cannot undo.
# expect: cause=autograd-inplace-modified certainty=certain exit=1
# needs: torch
import torch

w = torch.randn(256, device="cuda", requires_grad=True)
y = w.sigmoid()
y.mul_(2)  # <- here
y.add_(1)  # <- here
y.sum().backward()
