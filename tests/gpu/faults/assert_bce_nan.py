# SPDX-License-Identifier: Apache-2.0
# A NaN trips the assert that scores are between 0 and 1. What was asserted is the same: both causes fit.
# expect: cause=nan-in-loss-assert|input-out-of-range exit=1 code=710 candidate=nan-in-loss-assert
# needs: torch
import torch
import torch.nn.functional as F


def loss_of(scores, target):
    return F.binary_cross_entropy(scores, target)  # <- here


target = torch.ones(64, device="cuda")
scores = torch.rand(64, device="cuda")
print(loss_of(scores, target).isfinite().item())
scores[9] = (scores[9] - scores[9]) / 0.0
losses = [loss_of(scores, target) for _ in range(3)]
print(sum(losses).item())
