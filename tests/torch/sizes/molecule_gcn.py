# SPDX-License-Identifier: Apache-2.0
import argparse
import torch
import torch.nn as nn


class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.msg, self.upd = nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, h, src, dst):
        m = torch.relu(self.msg(h[src]))
        return torch.relu(self.upd(torch.zeros_like(h).index_add(0, dst, m)) + h)


class Net(nn.Module):
    def __init__(self, feats=32, d=256, layers=8):
        super().__init__()
        self.inp = nn.Linear(feats, d)
        self.layers = nn.ModuleList(Layer(d) for _ in range(layers))
        self.out = nn.Linear(d, 1)

    def forward(self, g):
        h = self.inp(g.x)
        for layer in self.layers:
            h = layer(h, g.src, g.dst)
        return self.out(h.view(g.n, -1, h.shape[1]).mean(1)).squeeze(1)


class Batch:
    """A batch of graphs of the same size, edges stay inside their graph."""

    def __init__(self, n, nodes=1000, degree=8, feats=32):
        self.n = n
        self.x = torch.randn(n * nodes, feats, device="cuda")
        base = torch.arange(n, device="cuda").mul_(nodes)[:, None]
        edge = lambda: (torch.randint(0, nodes, (n, nodes * degree), device="cuda") + base).flatten()
        self.src, self.dst = edge(), edge()
        self.y = torch.randn(n, device="cuda")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--graphs", type=int, default=64)
    p.add_argument("--steps", type=int, default=4)
    a = p.parse_args()
    net = Net().cuda()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for s in range(a.steps):
        g = Batch(a.graphs)
        loss = nn.functional.mse_loss(net(g), g.y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(s, loss.item(), flush=True)


main()
