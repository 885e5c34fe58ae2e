# SPDX-License-Identifier: Apache-2.0
# Forward runs without gradients.
# expect: cause=autograd-no-graph certainty=certain exit=1
# needs: torch
import torch

model = torch.nn.Linear(8, 8).cuda()
with torch.no_grad():
    loss = model(torch.randn(4, 8, device="cuda")).sum()
loss.backward()  # <- here
