# SPDX-License-Identifier: Apache-2.0
# label: memory-fraction
import argparse
import random
import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).cuda()


class Ring:
    """Chunks of transitions; after `chunks` of them the oldest is overwritten."""

    def __init__(self, chunks):
        self.chunks, self.data, self.at = chunks, [], 0

    def add(self, chunk):
        if len(self.data) < self.chunks:
            self.data.append(chunk)
        else:
            self.data[self.at] = chunk
        self.at = (self.at + 1) % self.chunks

    def sample(self, n):
        chunk = random.choice(self.data)
        lo = random.randrange(0, len(chunk) - n + 1)
        return chunk[lo:lo + n]


class Sac:
    def __init__(self, obs, act, hidden):
        self.obs, self.act = obs, act
        self.actor = mlp(obs, hidden, hidden, act)
        self.critic = mlp(obs + act, hidden, hidden, 1)
        self.opt_a = torch.optim.Adam(self.actor.parameters(), lr=3e-4)
        self.opt_c = torch.optim.Adam(self.critic.parameters(), lr=3e-4)

    def q(self, o, a):
        return self.critic(torch.cat([o, a], -1)).squeeze(-1)

    def learn(self, rows):
        o, a, r = rows[:, :self.obs], rows[:, self.obs:-1], rows[:, -1]
        loss_c = F.mse_loss(self.q(o, a), r)
        self.opt_c.zero_grad()
        loss_c.backward()
        self.opt_c.step()
        loss_a = -self.q(o, torch.tanh(self.actor(o))).mean()
        self.opt_a.zero_grad()
        loss_a.backward()
        self.opt_a.step()
        return loss_c.item(), loss_a.item()


def main():
    torch.cuda.set_per_process_memory_fraction(0.5)  #@here
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=60)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    args = ap.parse_args()
    obs, act = 376, 17
    sac = Sac(obs, act, 256 if args.variant == "a" else 400)
    ring = Ring(chunks=28)
    rows = int(120_000 * args.scale)
    for turn in range(args.turns):
        ring.add(torch.randn(rows, obs + act + 1, device="cuda"))
        losses = [sac.learn(ring.sample(4096)) for _ in range(2)]
        print(turn, len(ring.data), losses[-1], flush=True)


main()
