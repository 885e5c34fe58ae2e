# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention
"""WGAN with gradient penalty."""
import torch
import torch.nn as nn

BATCH = 256  #@scale


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


generator, critic = mlp(128, 1024, 1024, 3 * 64 * 64).cuda(), mlp(3 * 64 * 64, 1024, 1024, 1).cuda()
opt_g = torch.optim.RMSprop(generator.parameters(), lr=5e-5)
opt_c = torch.optim.RMSprop(critic.parameters(), lr=5e-5)
curves = {"critic": [], "generator": []}


def gradient_penalty(real, fake):
    mix = torch.rand(real.shape[0], 1, device="cuda")
    points = (mix * real + (1 - mix) * fake).requires_grad_(True)
    grads, = torch.autograd.grad(critic(points).sum(), points, create_graph=True)
    return ((grads.norm(2, dim=1) - 1) ** 2).mean()


def critic_round(real):
    fake = generator(torch.randn(BATCH, 128, device="cuda")).detach()
    loss = critic(fake).mean() - critic(real).mean() + 10 * gradient_penalty(real, fake)  #@here
    opt_c.zero_grad()
    loss.backward(retain_graph=True)  #@here
    opt_c.step()
    return loss


def generator_round():
    fake = generator(torch.randn(BATCH, 128, device="cuda"))
    loss = -critic(fake).mean()
    opt_g.zero_grad()
    loss.backward()
    opt_g.step()
    return loss.item()


for iteration in range(20000):
    for _ in range(5):
        real = torch.rand(BATCH, 3 * 64 * 64, device="cuda")
        curves["critic"].append(critic_round(real))  #@here
    curves["generator"].append(generator_round())
