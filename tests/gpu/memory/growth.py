# SPDX-License-Identifier: Apache-2.0
# A cache of features that nobody empties.
# expect: cause=oom-growth certainty=certain,likely exit=1
# needs: torch
# alone
import torch

cache = {}


@torch.no_grad()
def features(step, x):
    cache[step] = (x * 2).relu()  # <- here  <- culprit
    return cache[step].mean()


x = torch.randn(64 << 20, device="cuda")
for step in range(100000):
    features(step, x)
