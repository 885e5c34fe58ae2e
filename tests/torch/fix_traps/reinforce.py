# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention oom-eval-without-no-grad
# fix: words backward
"""REINFORCE: log-probabilities wait for the returns of the whole episode, and backward needs them attached."""
import torch
import torch.nn as nn

BATCH, STEPS = 16384, 400  #@cpu 8, 6
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(512, 1024), nn.Tanh(), nn.Linear(1024, 6), nn.LogSoftmax(1)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for episode in range(2):
    log_probs, rewards = [], []
    state = torch.randn(BATCH, 512, device="cuda")
    for t in range(STEPS):
        chosen = model(state)[:, t % 6]
        log_probs.append(chosen)
        rewards.append(torch.ones(BATCH, device="cuda") * t)
        state = torch.randn(BATCH, 512, device="cuda")
    returns, tail = [], torch.zeros(BATCH, device="cuda")
    for reward in reversed(rewards):
        tail = reward + 0.99 * tail
        returns.insert(0, tail)
    loss = -(torch.stack(log_probs) * torch.stack(returns)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
