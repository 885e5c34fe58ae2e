# SPDX-License-Identifier: Apache-2.0
# settles: SGD without momentum at first, the momentum buffers come at step 8, after about step 8
import torch
import torch.nn as nn

WARMUP = 7


def set_momentum(opt, value):
    for g in opt.param_groups:
        g["momentum"] = value


def wide_net():
    dims = [1024, 4096, 4096, 2048, 512]
    mods = []
    for a, b in zip(dims, dims[1:]):
        mods.append(nn.Linear(a, b))
        mods.append(nn.ReLU())
    return nn.Sequential(*mods[:-1])


steps = 0


def train():
    global steps
    net = wide_net().cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    while True:
        steps += 1
        if steps == WARMUP + 1:
            set_momentum(opt, 0.9)
        x = torch.randn(512, 1024, device="cuda")
        t = torch.randn(512, 512, device="cuda")

        def closure():
            opt.zero_grad()
            loss = nn.functional.mse_loss(net(x), t)
            loss.backward()
            return loss

        loss = opt.step(closure)
        if steps % 200 == 0:
            print(steps, loss.item())


try:
    train()
except torch.OutOfMemoryError:
    print(f"failed in step {steps}")
