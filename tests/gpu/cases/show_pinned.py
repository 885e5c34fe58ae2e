# SPDX-License-Identifier: Apache-2.0
# 400 MB pinned, then 100 MB on the device: pinned memory is host memory, nothing is wrong.
# expect-silent: exit=0
# needs: torch
# same-output
import torch

host = torch.empty(100_000_000, dtype=torch.float32, pin_memory=True)
device = torch.empty(25_000_000, dtype=torch.float32, device="cuda")
device.copy_(host[:25_000_000].fill_(1), non_blocking=True)
print(host.is_pinned(), device.mean().item())
