# SPDX-License-Identifier: Apache-2.0
# label: growth
import argparse
import copy
import torch
import torch.nn as nn


class KeepBest:
    """Keep the k best snapshots for weight averaging at the end."""

    def __init__(self, k):
        self.k = k
        self.snapshots = []

    def on_epoch_end(self, epoch, score, model):
        state = {name: value.detach().clone() for name, value in model.state_dict().items()}
        self.snapshots.append((score, epoch, state))  #@here
        best = sorted(self.snapshots, key=lambda s: s[0])[: self.k]
        return [epoch for _, epoch, _ in best]

    def average(self):
        best = sorted(self.snapshots, key=lambda s: s[0])[: self.k]
        out = copy.copy(best[0][2])
        for name in out:
            out[name] = sum(s[2][name] for s in best) / len(best)
        return out


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.fc(self.norm(x)))


def schedule(epoch):
    # the validation score comes from the offline scorer
    return 1.0 / (1 + epoch) + 0.01 * (epoch % 3)


def fit(model, epochs, keeper, rows):
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for epoch in range(epochs):
        for _ in range(2):
            x = torch.randn(rows, 2048, device="cuda")
            y = torch.randn(rows, 2048, device="cuda")
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        kept = keeper.on_epoch_end(epoch, schedule(epoch), model)
        print(f"epoch {epoch}: loss {loss.item():.4f} best epochs {kept}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--variant", default="a", choices=("a", "b"))
    args = parser.parse_args()
    depth = round(14 * args.scale)
    with torch.device("cuda"):
        net = nn.Sequential(*[Residual(2048) for _ in range(depth)])
    keeper = KeepBest(k=3 if args.variant == "a" else 5)
    fit(net, args.turns, keeper, rows=512 if args.variant == "a" else 768)
    net.load_state_dict(keeper.average())
