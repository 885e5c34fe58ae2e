# SPDX-License-Identifier: Apache-2.0
# label: eval-without-no-grad
import argparse
import torch
import torch.nn as nn


class Sage(nn.Module):
    def __init__(self, din, dout):
        super().__init__()
        self.fc = nn.Linear(2 * din, dout)

    def forward(self, h, src, dst):
        total = torch.zeros_like(h).index_add(0, dst, h.index_select(0, src))
        return torch.relu(self.fc(torch.cat([h, total], 1)))


class SageNet(nn.Module):
    def __init__(self, dim, layers, classes):
        super().__init__()
        self.layers = nn.ModuleList(Sage(dim, dim) for _ in range(layers))
        self.cls = nn.Linear(dim, classes)

    def forward(self, h, src, dst):
        for layer in self.layers:
            h = layer(h, src, dst)
        return self.cls(h)


class Graph:
    def __init__(self, nodes, degree, dim):
        self.nodes, self.dim = nodes, dim
        self.x = torch.randn(nodes, dim, device="cuda")
        self.src = torch.randint(0, nodes, (nodes * degree,), device="cuda")
        self.dst = torch.randint(0, nodes, (nodes * degree,), device="cuda")
        self.y = torch.randint(0, 40, (nodes,), device="cuda")

    def sample(self, n, degree):
        first = self.x[:n]
        e = n * degree
        return first, self.src[:e] % n, self.dst[:e] % n, self.y[:n]


def accuracy(model, g):
    model.eval()
    torch.no_grad()  #@here
    pred = model(g.x, g.src, g.dst).argmax(1)
    model.train()
    return (pred == g.y).float().mean().item()


def train(model, g, steps, rows):
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    kept = []
    for step in range(steps):
        x, src, dst, y = g.sample(rows, 4)
        loss = nn.functional.cross_entropy(model(x, src, dst), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        kept.append(loss.detach())
        print(step, flush=True)
        if (step + 1) % 10 == 0:
            print("train", torch.stack(kept).mean().item(), "acc", accuracy(model, g), flush=True)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=50)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    args = ap.parse_args()
    layers = 8 if args.variant == "a" else 9
    graph = Graph(int(420_000 * args.scale), 2, 256)
    net = SageNet(256, layers, 40).cuda()
    train(net, graph, args.turns, 10_000)
