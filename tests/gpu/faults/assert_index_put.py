# SPDX-License-Identifier: Apache-2.0
# A store through an index tensor.
# expect: cause=index-out-of-range certainty=certain,likely exit=1 code=710
# needs: torch
import torch

memory = torch.zeros(256, 16, device="cuda")
slots = torch.tensor([3, 200, 255], device="cuda")
memory[slots] = torch.ones(3, 16, device="cuda")
print(memory.sum().item())
slots[2] = 256
memory[slots] = torch.ones(3, 16, device="cuda")  # <- here
total = memory.sum(dim=1)
print(total.max().item())
