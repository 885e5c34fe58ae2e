# SPDX-License-Identifier: Apache-2.0
# torch.take counts elements, not rows.
# expect: cause=index-out-of-range certainty=certain,likely exit=1 code=710
# needs: torch
import torch

grid = torch.randn(8, 8, device="cuda")
places = torch.tensor([0, 9, 63], device="cuda")
print(torch.take(grid, places).shape)
places[0] = 64
values = torch.take(grid, places)  # <- here
scaled = values * 3
print(scaled.sum().item())
