# SPDX-License-Identifier: Apache-2.0
# label: growth
import argparse
import random
from dataclasses import dataclass
from typing import Callable

import torch
import torch.nn as nn


@dataclass
class Trial:
    params: dict
    score: float
    rerun: Callable


class Study:
    def __init__(self, seed=0):
        self.rng = random.Random(seed)
        self.trials = []

    def suggest(self):
        return {"lr": 10 ** self.rng.uniform(-4, -2), "wd": self.rng.choice([0.0, 0.01]),
                "dropout": self.rng.choice([0.0, 0.1, 0.2])}

    def optimize(self, objective, n):
        for i in range(n):
            params = self.suggest()
            score, rerun = objective(params)
            self.trials.append(Trial(params, score, rerun))  #@here
            print(f"trial {i} score {score:.4f} best {self.best.score:.4f}", flush=True)

    @property
    def best(self):
        return min(self.trials, key=lambda t: t.score)


def build(depth, width, dropout):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(width, width, device="cuda"), nn.ReLU(), nn.Dropout(dropout)]
    return nn.Sequential(*layers, nn.Linear(width, 1)).cuda()


def make_objective(depth, rows, steps=3):
    def objective(params):
        width = 2048
        model = build(depth, width, params["dropout"])
        opt = torch.optim.AdamW(model.parameters(), lr=params["lr"], weight_decay=params["wd"])

        def train(n):
            total = 0.0
            for _ in range(n):
                x = torch.randn(rows, width, device="cuda")
                loss = (model(x) - x.mean(1, keepdim=True)).pow(2).mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item()
            return total / n

        score = train(steps) + params["lr"]
        return score, lambda extra: train(extra)
    return objective


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--variant", default="a")
    opts = parser.parse_args()
    rows = 1024 if opts.variant == "a" else 2048
    study = Study()
    study.optimize(make_objective(round(6 * opts.scale), rows), opts.turns)
    print("refit", study.best.rerun(2))
