# SPDX-License-Identifier: Apache-2.0
# Much memory, taken and given back, fits every time.
# expect-silent: exit=0
# needs: torch
# same-output
import torch

for round in range(20):
    x = torch.zeros(1 << 28, device="cuda")
    y = x + round
    print(y[0].item())
    del x, y
torch.cuda.empty_cache()
