# SPDX-License-Identifier: Apache-2.0
# One of several views of a result is changed in place.
# expect: cause=autograd-inplace-refused certainty=certain exit=1
# needs: torch
import torch

w = torch.randn(4, 8, device="cuda", requires_grad=True)
first, *rest = (w * 2).unbind()
first.mul_(3)  # <- here
