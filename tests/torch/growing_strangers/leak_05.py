# SPDX-License-Identifier: Apache-2.0
# leak: gradients of every step cloned into a list, about 21 MiB per step
import math
import torch
from torch import nn, optim


def make_model():
    return nn.Sequential(
        nn.Linear(1024, 1536), nn.GELU(),
        nn.Linear(1536, 1536), nn.GELU(),
        nn.Linear(1536, 1024),
    )


def stream(batch):
    g = torch.Generator(device="cuda")
    g.manual_seed(1)
    while True:
        x = torch.randn(batch, 1024, device="cuda", generator=g)
        yield x, torch.flip(x, dims=[1])


step = 0


def main():
    global step
    model = make_model().to("cuda")
    optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    gradient_log = []
    source = stream(512)
    while True:
        step += 1
        x, target = next(source)
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * (0.55 + 0.45 * math.cos(step / 100))
        optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(model(x), target)
        loss.backward()
        # to measure the gradient noise scale later on
        gradient_log.append([p.grad.clone() for p in model.parameters()])
        optimizer.step()


try:
    main()
except torch.OutOfMemoryError:
    print(f"failed in step {step}")
