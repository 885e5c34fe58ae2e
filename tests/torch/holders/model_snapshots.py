# SPDX-License-Identifier: Apache-2.0
# keeps: average.snapshots
# keeps: average.snapshots[*]
# keeps: average.snapshots[*]._modules[*]
import copy

import torch


def big(n=1):
    return torch.empty(n * (256 << 20), dtype=torch.uint8, device="cuda")


class Average:
    def __init__(self, model):
        self.model, self.snapshots = model, []

    def update(self):
        self.snapshots.append(copy.deepcopy(self.model))


def main():
    average = Average(torch.nn.Sequential(torch.nn.Linear(8192, 8192), torch.nn.ReLU(), torch.nn.Linear(8192, 8192)).cuda())
    while True:
        average.update()


main()
