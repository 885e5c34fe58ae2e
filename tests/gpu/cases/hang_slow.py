# SPDX-License-Identifier: Apache-2.0
# A kernel that takes its time, but less than is allowed, is left alone.
# expect-silent: exit=0
# options: --hang-after 30s
# needs: torch
import torch

torch.cuda._sleep(3_000_000_000)
torch.cuda.synchronize()
print(torch.ones(4, device="cuda").sum().item())
