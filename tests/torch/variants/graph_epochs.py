# SPDX-License-Identifier: Apache-2.0
# label: graph-retention
import argparse
import torch
from torch import nn


class EdgeConv(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.msg = nn.Linear(d, d)
        self.upd = nn.Linear(2 * d, d)

    def forward(self, h, src, dst):
        m = torch.relu(self.msg(h[src]))
        agg = torch.zeros_like(h).index_add(0, dst, m)
        return torch.relu(self.upd(torch.cat([h, agg], -1)))


class Regressor(nn.Module):
    def __init__(self, feats, d):
        super().__init__()
        self.inp = nn.Linear(feats, d)
        self.conv = EdgeConv(d)
        self.out = nn.Linear(d, 1)

    def forward(self, g):
        h = self.conv(self.inp(g["x"]), g["src"], g["dst"])
        return self.out(h.mean(0))


def molecules(n, nodes, degree, feats):
    for _ in range(n):
        e = nodes * degree
        yield {
            "x": torch.randn(nodes, feats, device="cuda"),
            "src": torch.randint(0, nodes, (e,), device="cuda"),
            "dst": torch.randint(0, nodes, (e,), device="cuda"),
            "y": torch.randn(1, device="cuda"),
        }


def train_epoch(model, opt, loader):
    model.train()
    opt.zero_grad()
    total, seen = 0, 0
    for g in loader:
        loss = nn.functional.l1_loss(model(g), g["y"])
        total = total + loss  #@here
        seen += 1
        print("graph", seen, flush=True)
    (total / seen).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    return total.item() / seen


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--variant", choices=["a", "b"], default="a")
    cfg = parser.parse_args()
    width = 256 if cfg.variant == "a" else 288
    net = Regressor(64, width).cuda()
    optim = torch.optim.Adam(net.parameters(), lr=2e-4)
    nodes = int(20_000 * cfg.scale)
    for epoch in range(2):
        print("epoch", epoch, train_epoch(net, optim, molecules(cfg.turns, nodes, 8, 64)))
