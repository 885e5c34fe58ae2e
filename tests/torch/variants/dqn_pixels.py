# SPDX-License-Identifier: Apache-2.0
# label: growth
"""Pixel DQN with vectorised environments; frames stay on the device."""
import argparse
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F


class QNet(nn.Module):
    def __init__(self, actions, hidden):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 16, 8, stride=4)
        self.conv2 = nn.Conv2d(16, 32, 4, stride=2)
        self.fc = nn.Linear(32 * 9 * 9, hidden)
        self.out = nn.Linear(hidden, actions)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        return self.out(F.relu(self.fc(x.flatten(1))))


class Replay:
    def __init__(self, capacity=20_000):
        self.rollouts = deque(maxlen=capacity)

    def add(self, obs, actions, rewards, nxt):
        self.rollouts.append((obs, actions, rewards, nxt))  #@here

    def sample(self, k):
        obs, actions, rewards, nxt = random.choice(self.rollouts)
        start = random.randrange(0, max(1, obs.shape[0] - k))
        pick = slice(start, start + k)
        return obs[pick], actions[pick], rewards[pick], nxt[pick]


class FakeAtari:
    def __init__(self, envs, steps, device):
        self.n, self.device = envs * steps, device

    def rollout(self):
        obs = torch.rand(self.n, 4, 84, 84, device=self.device)
        nxt = torch.rand(self.n, 4, 84, 84, device=self.device)
        actions = torch.randint(0, 6, (self.n,), device=self.device)
        rewards = torch.randn(self.n, device=self.device)
        return obs, actions, rewards, nxt


def update(net, target, opt, batch, gamma=0.99):
    obs, actions, rewards, nxt = batch
    with torch.no_grad():
        goal = rewards + gamma * target(nxt).max(1).values
    q = net(obs).gather(1, actions[:, None]).squeeze(1)
    loss = F.smooth_l1_loss(q, goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=60)
    p.add_argument("--variant", choices="ab", default="a")
    a = p.parse_args()
    hidden = 256 if a.variant == "a" else 384
    env = FakeAtari(max(1, int(64 * a.scale)), 16, "cuda")
    net, target = QNet(6, hidden).cuda(), QNet(6, hidden).cuda()
    opt = torch.optim.Adam(net.parameters(), lr=1e-4)
    replay = Replay()
    for turn in range(a.turns):
        replay.add(*env.rollout())
        losses = [update(net, target, opt, replay.sample(128)) for _ in range(2)]
        if turn % 10 == 0:
            target.load_state_dict(net.state_dict())
        print(turn, sum(losses) / len(losses), flush=True)


if __name__ == "__main__":
    main()
