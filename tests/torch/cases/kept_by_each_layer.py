# SPDX-License-Identifier: Apache-2.0
# Each layer has a cache that nobody empties; its parameters are the model's.
# expect: cause=oom-growth|oom-capacity exit=1
# needs: torch
# gpu: sim:rtx4090
# holder: net.layers[*].cache[*] 92
import torch


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(512, 512)
        self.cache = []

    def forward(self, x):
        self.cache.append(torch.empty(256 << 20, dtype=torch.uint8, device="cuda"))
        return self.project(x)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Attention() for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def main():
    net = Net().cuda()
    x = torch.zeros(2, 512, device="cuda")
    with torch.no_grad():
        while True:
            net(x)


main()
