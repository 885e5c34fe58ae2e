# SPDX-License-Identifier: Apache-2.0
# A column is changed. Which kernel wrote it is not known: the forward line is named.
# expect: cause=autograd-inplace-modified certainty=certain exit=1
# needs: torch
import torch

w = torch.randn(32, 16, device="cuda", requires_grad=True)
y = w.exp()  # <- here
y[:, 3] = 0
y.sum().backward()
