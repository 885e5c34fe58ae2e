# SPDX-License-Identifier: Apache-2.0
# leak: replay buffer on the GPU without a limit (DQN), about 28 MiB per step
import copy
import random
from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F

ENVS, ACTIONS = 256, 6
random.seed(3)


@dataclass
class Transition:
    obs: torch.Tensor
    action: torch.Tensor
    reward: torch.Tensor
    next_obs: torch.Tensor


@dataclass
class Replay:
    items: list = field(default_factory=list)

    def add(self, t):
        self.items.append(t)

    def sample(self, chunks=2, rows=64):
        picked = [random.choice(self.items) for _ in range(chunks)]
        idx = torch.randint(0, ENVS, (rows,), device="cuda")
        cat = lambda name: torch.cat([getattr(t, name)[idx] for t in picked])
        return cat("obs"), cat("action"), cat("reward"), cat("next_obs")


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(),
            nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(),
            nn.Flatten(),
        )
        self.head = nn.Sequential(nn.Linear(64 * 9 * 9, 256), nn.ReLU(), nn.Linear(256, ACTIONS))

    def forward(self, x):
        return self.head(self.conv(x))


class FakeEnvs:
    def reset(self):
        return torch.rand(ENVS, 4, 84, 84, device="cuda")

    def step(self, action):
        return torch.rand(ENVS, 4, 84, 84, device="cuda"), torch.randn(ENVS, device="cuda")


class Agent:
    def __init__(self):
        self.q = QNet().to("cuda")
        self.target = copy.deepcopy(self.q)
        self.opt = torch.optim.RMSprop(self.q.parameters(), lr=2.5e-4, alpha=0.95, eps=0.01)
        self.replay = Replay()
        self.updates = 0

    @torch.no_grad()
    def act(self, obs):
        if random.random() < 0.1:
            return torch.randint(0, ACTIONS, (ENVS,), device="cuda")
        return self.q(obs).argmax(1)

    def learn(self):
        o, a, r, o2 = self.replay.sample()
        with torch.no_grad():
            goal = r + 0.99 * self.target(o2).max(1).values
        q = self.q(o).gather(1, a[:, None]).squeeze(1)
        loss = F.huber_loss(q, goal)
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.q.parameters(), 1.0)
        self.opt.step()
        if self.updates % 40 == 0:
            self.target.load_state_dict(self.q.state_dict())


def main():
    agent, envs = Agent(), FakeEnvs()
    try:
        obs = envs.reset()
        while True:
            agent.updates += 1
            action = agent.act(obs)
            nxt, reward = envs.step(action)
            agent.replay.add(Transition(obs, action, reward, nxt))
            obs = nxt
            agent.learn()
    except torch.OutOfMemoryError:
        print(f"failed in step {agent.updates}")


if __name__ == "__main__":
    main()
