# SPDX-License-Identifier: Apache-2.0
# A handled CUDA error, and later a death that has nothing to do with it.
# expect: cause=none exit=1
# expect-note: cause=device-ordinal-out-of-range
# needs: torch
import torch

try:
    torch.cuda.set_device(77)  # <- note
except RuntimeError:
    torch.cuda.set_device(0)
x = torch.ones(4, device="cuda")
settings = {"lr": 0.1}
print(settings["momentum"] * x)
