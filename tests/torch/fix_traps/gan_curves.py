# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention
# fix: edit kept
"""A GAN whose critic retains its graph; the loss is kept for a plot."""
import torch
import torch.nn as nn

BATCH, STEPS = 32768, 100  #@cpu 8, 4
torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 784)).cuda()
critic = nn.Sequential(nn.Linear(784, 1024), nn.LeakyReLU(0.2), nn.Linear(1024, 1)).cuda()
opt_g = torch.optim.SGD(generator.parameters(), lr=0.01)
opt_c = torch.optim.SGD(critic.parameters(), lr=0.01)
curve = {"critic": [], "generator": []}
for step in range(STEPS):
    real, fake = torch.randn(BATCH, 784, device="cuda"), generator(torch.randn(BATCH, 128, device="cuda"))
    loss_c = critic(fake).mean() - critic(real).mean()
    opt_c.zero_grad()
    loss_c.backward(retain_graph=True)
    opt_c.step()
    loss_g = -critic(fake).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    curve["critic"].append(loss_c)
    curve["generator"].append(loss_g.item())
