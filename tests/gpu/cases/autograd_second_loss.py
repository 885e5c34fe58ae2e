# SPDX-License-Identifier: Apache-2.0
# backward is called twice for one loss.
# expect: cause=autograd-second-backward certainty=certain exit=1
# needs: torch
import torch

model = torch.nn.Linear(8, 8).cuda()
loss = model(torch.randn(4, 8, device="cuda")).pow(2).sum()  # <- here
loss.backward()
loss.backward()
