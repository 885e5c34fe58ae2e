# SPDX-License-Identifier: Apache-2.0
# Probabilities that are not: one is negative.
# expect: cause=invalid-probability certainty=certain,likely exit=1 code=710
# needs: torch
import torch


def draw(weights):
    return torch.multinomial(weights, 4, replacement=True)  # <- here


weights = torch.rand(8, 50, device="cuda")
print(draw(weights).shape)
tokens = draw(weights - 0.5)
print((tokens + 1).max().item())
