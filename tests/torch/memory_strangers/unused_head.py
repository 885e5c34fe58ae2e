# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention
"""A second head whose result is logged with its graph, which keeps what both heads share."""
import torch
import torch.nn as nn

BATCH = 1536  #@scale


def main(steps=2000):
    trunk, head, probe = nn.Sequential(nn.Linear(768, 12288), nn.ReLU()).cuda(), nn.Linear(12288, 100).cuda(), nn.Linear(12288, 8).cuda()
    opt = torch.optim.SGD([*trunk.parameters(), *head.parameters()], lr=0.05)
    logged = []
    for _ in range(steps):
        z = trunk(torch.randn(BATCH, 768, device="cuda"))  #@here
        opt.zero_grad()
        head(z).pow(2).mean().backward()
        opt.step()
        logged.append(probe(z).mean())  #@here


main()
