# SPDX-License-Identifier: Apache-2.0
# label: graph-retention
"""REINFORCE on stacked frames. The policy is updated when the episode is over."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Policy(nn.Module):
    def __init__(self, actions, hidden):
        super().__init__()
        self.c1 = nn.Conv2d(4, 32, 8, stride=4)
        self.c2 = nn.Conv2d(32, 64, 4, stride=2)
        self.fc = nn.Linear(64 * 81, hidden)
        self.pi = nn.Linear(hidden, actions)

    def forward(self, obs):
        h = F.relu(self.c2(F.relu(self.c1(obs))))
        return F.log_softmax(self.pi(F.relu(self.fc(h.flatten(1)))), -1)


class Env:
    horizon = 4500

    def __init__(self, n):
        self.n, self.t = n, 0

    def reset(self):
        self.t = 0
        return self.frames()

    def frames(self):
        return torch.rand(self.n, 4, 84, 84, device="cuda")

    def step(self, actions):
        self.t += 1
        return self.frames(), torch.randn(self.n, device="cuda"), self.t >= self.horizon


class Agent:
    def __init__(self, policy, lr=1e-4, gamma=0.99):
        self.policy, self.gamma = policy, gamma
        self.opt = torch.optim.Adam(policy.parameters(), lr=lr)
        self.saved, self.rewards = [], []

    def act(self, obs):
        logp = self.policy(obs)
        noise = -torch.log(-torch.log(torch.rand_like(logp)))
        action = (logp.detach() + noise).argmax(-1)
        self.saved.append(logp.gather(1, action[:, None]).squeeze(1))  #@here
        return action

    def finish(self):
        ret, returns = 0.0, []
        for r in reversed(self.rewards):
            ret = r + self.gamma * ret
            returns.insert(0, ret)
        loss = -torch.stack([l * g for l, g in zip(self.saved, returns)]).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.saved.clear()
        self.rewards.clear()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=60)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    a = ap.parse_args()
    env = Env(int(1024 * a.scale))
    agent = Agent(Policy(6, 256 if a.variant == "a" else 512).cuda())
    obs = env.reset()
    for t in range(a.turns):
        obs, reward, done = env.step(agent.act(obs))
        agent.rewards.append(reward)
        if done:
            agent.finish()
            obs = env.reset()
        print(t, reward.mean().item(), flush=True)


main()
