# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention oom-eval-without-no-grad
"""PPO on image observations, with many environments at once."""
import torch
import torch.nn as nn
from torch.distributions import Categorical

ENVS = 128  #@scale
HORIZON = 8


class ActorCritic(nn.Module):
    def __init__(self, actions=6):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(), nn.Flatten(),
                                      nn.Linear(64 * 9 * 9, 512), nn.ReLU())
        self.policy, self.value = nn.Linear(512, actions), nn.Linear(512, 1)

    def forward(self, obs):
        h = self.features(obs)
        return self.policy(h), self.value(h).squeeze(-1)  #@here


class RolloutBuffer:
    def __init__(self):
        self.obs, self.actions, self.log_probs, self.rewards, self.values = [], [], [], [], []

    def push(self, obs, action, log_prob, reward, value):
        self.obs.append((obs * 255).byte().cpu())
        self.actions.append(action)
        self.log_probs.append(log_prob)  #@here
        self.rewards.append(reward)
        self.values.append(value)  #@here

    def last(self, n):
        return self.obs[-n:], self.actions[-n:], self.log_probs[-n:], self.rewards[-n:], self.values[-n:]


class Env:
    def reset(self):
        return torch.rand(ENVS, 4, 84, 84, device="cuda")

    def step(self, action):
        return torch.rand(ENVS, 4, 84, 84, device="cuda"), torch.rand(ENVS, device="cuda")


agent = ActorCritic().cuda()
optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
buffer, env = RolloutBuffer(), Env()
obs = env.reset()
for update in range(1000):
    for t in range(HORIZON):
        logits, value = agent(obs)  #@here
        dist = Categorical(logits=logits, validate_args=False)
        action = dist.sample()
        next_obs, reward = env.step(action)
        buffer.push(obs, action, dist.log_prob(action), reward, value)  #@here
        obs = next_obs
    states, actions, old_log_probs, rewards, values = buffer.last(HORIZON)
    for state, action, old, reward, value in zip(states, actions, old_log_probs, rewards, values):
        logits, new_value = agent(state.cuda() / 255)
        ratio = (Categorical(logits=logits, validate_args=False).log_prob(action) - old.detach()).exp()
        advantage = reward - value.detach()
        loss = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean() + 0.5 * (new_value - reward).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
