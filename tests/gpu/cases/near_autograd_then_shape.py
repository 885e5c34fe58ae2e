# SPDX-License-Identifier: Apache-2.0
# A refusal is caught; what ends the program is something else.
# expect: cause=shape-mismatch certainty=certain,likely exit=1
# needs: torch
import torch

w = torch.randn(8, 8, device="cuda", requires_grad=True)
try:
    w[0] = 1
except RuntimeError as e:
    print(e)
w @ torch.randn(4, 8, device="cuda")  # <- here
