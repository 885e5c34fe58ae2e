# SPDX-License-Identifier: Apache-2.0
# Advanced indexing with a mask turned into numbers the wrong way.
# expect: cause=index-out-of-range certainty=certain,likely exit=1 code=710
# needs: torch
import torch


def keep(x, which):
    return x[which]  # <- here


x = torch.randn(50, 4, device="cuda")
print(keep(x, torch.arange(10, device="cuda")).shape)
picked = keep(x, torch.arange(45, 55, device="cuda"))
for _ in range(10):
    picked = picked + 1
print(picked.sum().item())
