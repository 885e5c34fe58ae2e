# SPDX-License-Identifier: Apache-2.0
# A CPU number next to a GPU tensor, and a CPU index, are allowed.
# expect-silent: exit=0
# needs: torch
# same-output
import torch

x = torch.arange(6.0, device="cuda")
print((x + torch.tensor(2.0)).sum().item())
print(x[torch.tensor([0, 2])].sum().item())
print((x.cpu() + torch.ones(6)).sum().item())
