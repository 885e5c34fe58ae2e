# SPDX-License-Identifier: Apache-2.0
# A broadcast by mistake: [n, 1] against [n] gives n x n.
# expect: cause=oom-request-too-large certainty=certain,likely exit=1
# needs: torch
import torch

prediction = torch.zeros(400_000, 1, device="cuda")
target = torch.zeros(400_000, device="cuda")
loss = ((prediction - target) ** 2).mean()  # <- here
print(loss)
