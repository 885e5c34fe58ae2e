# SPDX-License-Identifier: Apache-2.0
# label: eval-without-no-grad
"""Uncertainty by dropout: many passes over the same test batch, after training."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.inp = nn.Linear(256, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.out = nn.Linear(width, 10)

    def forward(self, x):
        x = F.relu(self.inp(x))
        for layer in self.hidden:
            x = F.dropout(F.relu(layer(x)), 0.2)
        return self.out(x)


def train(net, steps):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(steps):
        x, y = torch.randn(512, 256, device="cuda"), torch.randint(0, 10, (512,), device="cuda")
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item(), flush=True)


def uncertainty(net, x, passes):
    runs = torch.stack([F.softmax(net(x), -1) for _ in range(passes)])  #@here
    return runs.var(0).mean().item()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    net = Net(2048, 6 if a.variant == "a" else 8).cuda()
    train(net, 8)
    print("variance", uncertainty(net, torch.randn(int(8192 * a.scale), 256, device="cuda"), 64))
