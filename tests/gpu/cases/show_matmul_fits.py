# SPDX-License-Identifier: Apache-2.0
# 10x10 by 10x5 fits: nothing to say.
# expect-silent: exit=0
# needs: torch
# same-output
import torch

a = torch.ones(10, 10, device="cuda")
b = torch.ones(10, 5, device="cuda")
print(torch.matmul(a, b).shape, (a @ b).sum().item())
