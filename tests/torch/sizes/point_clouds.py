# SPDX-License-Identifier: Apache-2.0
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class PointMLP(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.fcs = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.norms = nn.ModuleList(nn.LayerNorm(b) for b in sizes[1:])

    def forward(self, x):
        for fc, norm in zip(self.fcs, self.norms):
            x = F.relu(norm(fc(x)))
        return x


class PointNet(nn.Module):
    def __init__(self, classes=40):
        super().__init__()
        self.points = PointMLP([3] + [512] * 10)
        self.head = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, classes))

    def forward(self, x):
        return self.head(self.points(x).amax(1))


def clouds(n, batch, points):
    for _ in range(n):
        x = torch.randn(batch, points, 3, device="cuda")
        yield x / x.norm(dim=-1, keepdim=True).clamp(min=1e-3), torch.randint(0, 40, (batch,), device="cuda")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--points", type=int, default=4096)
    ap.add_argument("--steps", type=int, default=4)
    a = ap.parse_args()
    net = PointNet().cuda()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for i, (x, y) in enumerate(clouds(a.steps, a.batch_size, a.points)):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(i, loss.item(), flush=True)
