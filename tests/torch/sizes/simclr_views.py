# SPDX-License-Identifier: Apache-2.0
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


def stack(cin, cout, n, stride):
    layers = []
    for i in range(n):
        layers += [nn.Conv2d(cin if i == 0 else cout, cout, 3, stride=stride if i == 0 else 1, padding=1, bias=False),
                   nn.BatchNorm2d(cout), nn.ReLU()]
    return nn.Sequential(*layers)


class Encoder(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.net = nn.Sequential(stack(3, 64, 4, 1), stack(64, 128, 4, 2), stack(128, 256, 4, 2))
        self.proj = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, dim))

    def forward(self, x):
        return F.normalize(self.proj(self.net(x).mean((2, 3))), dim=1)


def augment(x):
    gain = 0.8 + 0.4 * torch.rand(len(x), 1, 1, 1, device=x.device)
    return x.flip(3) * gain


def nt_xent(a, b, tau=0.2):
    z = torch.cat([a, b])
    sims = z @ z.t() / tau
    sims = sims - 1e9 * torch.eye(len(z), device=z.device)
    n = len(a)
    goal = torch.cat([torch.arange(n, 2 * n), torch.arange(n)]).to(z.device)
    return F.cross_entropy(sims, goal)


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--batch-size", type=int, default=384)
    cli.add_argument("--steps", type=int, default=4)
    a = cli.parse_args()
    net = Encoder().cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9)
    for s in range(a.steps):
        x = torch.rand(a.batch_size, 3, 64, 64, device="cuda")
        loss = nt_xent(net(augment(x)), net(x))
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(s, loss.item(), flush=True)
