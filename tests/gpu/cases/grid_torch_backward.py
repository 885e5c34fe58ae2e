# SPDX-License-Identifier: Apache-2.0
# The forward of pdist runs, its built-in backward needs more than 65,535 blocks along y.
# expect: cause=launch-config-grid-limit certainty=certain,likely exit=1
# needs: torch
import torch
import torch.nn.functional as F


def distances(x):
    return F.pdist(x)  # <- here


def train(x):
    loss = distances(x).sum()
    loss.backward()  # <- backward


x = torch.randn(2, 34_000_000, device="cuda", requires_grad=True)
train(x)
torch.cuda.synchronize()
