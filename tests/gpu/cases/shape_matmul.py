# SPDX-License-Identifier: Apache-2.0
# 10x10 by 5x10 does not fit.
# expect: cause=shape-mismatch certainty=certain,likely exit=1
# needs: torch
# same-output
import torch

a = torch.randn(10, 10, device="cuda")
b = torch.randn(5, 10, device="cuda")
print(a.shape, b.shape)
c = torch.matmul(a, b)  # <- here
