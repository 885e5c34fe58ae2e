# SPDX-License-Identifier: Apache-2.0
# A parameter is updated by hand, without no_grad.
# expect: cause=autograd-inplace-refused certainty=certain exit=1
# needs: torch
import torch

w = torch.zeros(8, device="cuda", requires_grad=True)
w.sum().backward()
w -= 0.1 * w.grad  # <- here
