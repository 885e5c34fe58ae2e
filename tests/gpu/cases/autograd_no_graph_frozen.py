# SPDX-License-Identifier: Apache-2.0
# All parameters are frozen.
# expect: cause=autograd-no-graph certainty=certain exit=1
# needs: torch
import torch

model = torch.nn.Linear(8, 8).cuda().requires_grad_(False)
loss = model(torch.randn(4, 8, device="cuda")).pow(2).mean()
loss.backward()  # <- here
