# SPDX-License-Identifier: Apache-2.0
# One tensor, whose graph reaches back to the first step.
# expect: cause=oom-graph-retention|oom-eval-without-no-grad exit=1
# needs: torch
# gpu: sim:rtx4090
# holder: t.total_loss 1
import torch
import torch.nn as nn


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 2048)).cuda()
        self.total_loss = 0

    def step(self):
        loss = self.model(torch.randn(8192, 2048, device="cuda")).square().mean()
        self.total_loss += loss


def main():
    t = Trainer()
    while True:
        t.step()


main()
