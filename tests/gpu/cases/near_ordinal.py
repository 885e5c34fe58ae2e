# SPDX-License-Identifier: Apache-2.0
# Device 0 by every name it has.
# expect-silent: exit=0
# needs: torch
# same-output
import torch

torch.cuda.set_device(0)
for name in ("cuda", "cuda:0"):
    print(torch.ones(2, device=name).sum().item())
print(torch.nn.Linear(2, 2).to("cuda:0").weight.device)
