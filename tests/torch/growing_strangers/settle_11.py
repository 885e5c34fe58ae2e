# SPDX-License-Identifier: Apache-2.0
# settles: bounded replay buffer (30 chunks on the GPU) is full, after about step 31
import random
from collections import deque, namedtuple

import torch
from torch import nn
import torch.nn.functional as F

Chunk = namedtuple("Chunk", "state action reward following")
random.seed(0)


class Actor(nn.Module):
    def __init__(self, s=2048, a=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(s, 512), nn.ReLU(), nn.Linear(512, a), nn.Tanh())

    def forward(self, s):
        return self.net(s)


class Critic(nn.Module):
    def __init__(self, s=2048, a=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(s + a, 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, s, a):
        return self.net(torch.cat([s, a], 1)).squeeze(1)


class DDPG:
    def __init__(self):
        self.actor, self.actor_t = Actor().cuda(), Actor().cuda()
        self.critic, self.critic_t = Critic().cuda(), Critic().cuda()
        self.actor_t.load_state_dict(self.actor.state_dict())
        self.critic_t.load_state_dict(self.critic.state_dict())
        self.opt_a = torch.optim.Adam(self.actor.parameters(), lr=1e-4)
        self.opt_c = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.buffer = deque(maxlen=30)
        self.n = 0

    def collect(self, envs=4096):
        with torch.no_grad():
            s = torch.randn(envs, 2048, device="cuda")
            a = (self.actor(s) + 0.1 * torch.randn(envs, 16, device="cuda")).clamp(-1, 1)
            s2 = s + 0.01 * torch.randn_like(s)
            r = -a.pow(2).mean(1)
        self.buffer.append(Chunk(s, a, r, s2))

    def soft(self, src, dst, tau=0.005):
        with torch.no_grad():
            for p, q in zip(src.parameters(), dst.parameters()):
                q.mul_(1 - tau).add_(p, alpha=tau)

    def update(self):
        c = random.choice(self.buffer)
        idx = torch.randint(0, c.state.shape[0], (256,), device="cuda")
        s, a, r, s2 = (t[idx] for t in c)
        with torch.no_grad():
            target = r + 0.99 * self.critic_t(s2, self.actor_t(s2))
        loss_c = F.mse_loss(self.critic(s, a), target)
        self.opt_c.zero_grad()
        loss_c.backward()
        self.opt_c.step()
        loss_a = -self.critic(s, self.actor(s)).mean()
        self.opt_a.zero_grad()
        loss_a.backward()
        self.opt_a.step()
        self.soft(self.actor, self.actor_t)
        self.soft(self.critic, self.critic_t)

    def run(self):
        while True:
            self.n += 1
            self.collect()
            self.update()


agent = DDPG()
try:
    agent.run()
except torch.OutOfMemoryError:
    print(f"failed in step {agent.n}")
