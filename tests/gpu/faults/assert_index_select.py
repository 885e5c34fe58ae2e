# SPDX-License-Identifier: Apache-2.0
# torch.index_select with a row that does not exist.
# expect: cause=index-out-of-range certainty=certain,likely exit=1 code=710
# needs: torch
import torch

x = torch.randn(100, 8, device="cuda")
rows = torch.tensor([0, 5, 99], device="cuda")
good = torch.index_select(x, 0, rows)
print(good.shape)
bad = torch.index_select(x, 0, rows + 1)  # <- here
y = bad @ torch.ones(8, 8, device="cuda")
print(y.sum().item())
