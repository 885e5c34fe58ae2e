# SPDX-License-Identifier: Apache-2.0
# NaN logits reach a sampler whose own checks are off.
# expect: cause=invalid-probability certainty=certain,likely exit=1 code=710
# needs: torch
import torch
from torch.distributions import Categorical


def sample(logits):
    return Categorical(logits=logits, validate_args=False).sample((4,))  # <- here


logits = torch.randn(16, 30, device="cuda")
print(sample(logits).shape)
logits[5, 3] = float("nan")
actions = sample(logits)
print((actions * 2).sum().item())
