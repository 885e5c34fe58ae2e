# SPDX-License-Identifier: Apache-2.0
# One-hot by hand, with one class too few.
# expect: cause=index-out-of-range certainty=certain,likely exit=1 code=710
# needs: torch
import torch


def one_hot(labels, classes):
    out = torch.zeros(labels.shape[0], classes, device="cuda")
    out.scatter_(1, labels.unsqueeze(1), 1.0)  # <- here
    return out


labels = torch.arange(20, device="cuda") % 10
print(one_hot(labels, 10).sum().item())
wrong = one_hot(labels, 9)
print((wrong + 1).sum().item())
