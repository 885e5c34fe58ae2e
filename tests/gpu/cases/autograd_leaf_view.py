# SPDX-License-Identifier: Apache-2.0
# One element of a parameter is set.
# expect: cause=autograd-inplace-refused certainty=certain exit=1
# needs: torch
import torch

w = torch.zeros(8, device="cuda", requires_grad=True)
w[0] = 1  # <- here
