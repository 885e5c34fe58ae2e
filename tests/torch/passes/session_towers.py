# SPDX-License-Identifier: Apache-2.0
# label: graph-retention
"""Two-tower recommender. A user's last state is looked up when the user comes again."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class UserTower(nn.Module):
    def __init__(self, items, d):
        super().__init__()
        self.item = nn.Embedding(items, d)
        self.cell = nn.GRU(d, d, batch_first=True)
        self.mix = nn.ModuleList(nn.Linear(d, d) for _ in range(4))

    def embed(self, history):
        h, _ = self.cell(self.item(history))
        for layer in self.mix:
            h = h + F.gelu(layer(h))
        return h.mean(1)


class States:
    def __init__(self):
        self.of = {}

    def remember(self, key, state):
        self.of[key] = state

    def recall(self, key, like):
        return self.of.get(key, torch.zeros_like(like))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    tower, states = UserTower(50_000, 256 if a.variant == "a" else 320).cuda(), States()
    opt = torch.optim.Adagrad(tower.parameters(), lr=0.05)
    users = int(256 * a.scale)
    for step in range(300):
        history = torch.randint(0, 50_000, (users, 64), device="cuda")
        state = tower.embed(history)
        state = state + 0.1 * states.recall(step % 1000, state).detach()
        pos, neg = (tower.item(torch.randint(0, 50_000, (users,), device="cuda")) for _ in range(2))
        loss = -F.logsigmoid((state * (pos - neg)).sum(-1)).mean()
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()
        states.remember(step % 1000, state)  #@here
        print(step, loss.item(), flush=True)


main()
