# SPDX-License-Identifier: Apache-2.0
# What all steps use was computed once, before the loop.
# expect: cause=autograd-second-backward certainty=certain exit=1
# needs: torch
import torch

w = torch.randn(8, 8, device="cuda", requires_grad=True)
x = torch.randn(8, 8, device="cuda")
basis = w.exp()  # <- here
for step in range(3):
    loss = (basis * x).sum()
    loss.backward()
