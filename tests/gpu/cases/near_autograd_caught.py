# SPDX-License-Identifier: Apache-2.0
# The program expects the refusal, and goes on.
# expect-silent: exit=0
# needs: torch
import torch

w = torch.zeros(8, device="cuda", requires_grad=True)
try:
    w += 1
except RuntimeError as e:
    print(e)
loss = w.exp().sum()
loss.backward()
try:
    loss.backward()
except RuntimeError as e:
    print(e)
