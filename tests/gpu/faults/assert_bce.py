# SPDX-License-Identifier: Apache-2.0
# Logits where probabilities are meant.
# expect: cause=input-out-of-range exit=1 code=710 candidate=nan-in-loss-assert
# needs: torch
import torch
import torch.nn.functional as F


def loss_of(scores, target):
    return F.binary_cross_entropy(scores, target)  # <- here


target = torch.randint(0, 2, (128,), device="cuda").float()
logits = torch.linspace(-3, 3, 128, device="cuda")
good = loss_of(torch.sigmoid(logits), target)
bad = loss_of(logits, target)
total = good + bad
print(total.item())
