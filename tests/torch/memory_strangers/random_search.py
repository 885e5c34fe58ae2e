# SPDX-License-Identifier: Apache-2.0
# label: oom-growth
"""A random search over hyper-parameters."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

WIDTH = 3000
random.seed(1)


def build(depth, dropout):
    layers = [nn.Linear(256, WIDTH, device="cuda"), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Linear(WIDTH, WIDTH, device="cuda"), nn.ReLU(), nn.Dropout(dropout)]  #@here
    return nn.Sequential(*layers, nn.Linear(WIDTH, 10, device="cuda"))


def train(model, lr, steps=5):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        x, y = torch.randn(128, 256, device="cuda"), torch.randint(0, 10, (128,), device="cuda")
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()  #@here
        optimizer.step()  #@here
    return loss.item(), optimizer


class Study:
    def __init__(self):
        self.trials = []

    def optimize(self, trials):
        for number in range(trials):
            params = {"depth": random.randint(2, 5), "dropout": random.random() / 2, "lr": 10 ** random.uniform(-4, -2)}
            model = build(params["depth"], params["dropout"])  #@here
            score, optimizer = train(model, params["lr"])
            self.trials.append({"params": params, "score": score, "model": model, "optimizer": optimizer})  #@here
        return min(self.trials, key=lambda trial: trial["score"])


print(Study().optimize(5000)["params"])
