# SPDX-License-Identifier: Apache-2.0
import argparse
import torch

SIZES = ((256, 256), (256, 256), (256, 256))


class Population:
    """Evolution strategies: each member has its own perturbed weights."""

    def __init__(self, members, sigma=0.02, lr=0.01):
        self.members, self.sigma, self.lr = members, sigma, lr
        self.base = [torch.randn(s, device="cuda") * s[0] ** -0.5 for s in SIZES]

    def perturb(self):
        noise = [torch.randn(self.members, *s, device="cuda") for s in SIZES]
        weights = [e.mul(self.sigma).add_(b) for e, b in zip(noise, self.base)]
        return noise, weights

    def evaluate(self, weights, steps=5):
        x = torch.randn(self.members, 1, 256, device="cuda")
        fitness = torch.zeros(self.members, device="cuda")
        for _ in range(steps):
            for w in weights:
                x = torch.tanh(torch.bmm(x, w))
            fitness += x.mean((1, 2))
        return fitness

    def update(self, noise, fitness):
        rank = fitness.argsort().argsort().float() / self.members - 0.5
        for b, e in zip(self.base, noise):
            b.add_(torch.tensordot(rank, e, dims=1), alpha=self.lr / (self.members * self.sigma))
        return fitness.mean().item()


@torch.no_grad()
def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--population", type=int, default=7168)
    ap.add_argument("--generations", type=int, default=4)
    a = ap.parse_args()
    pop = Population(a.population)
    for g in range(a.generations):
        noise, weights = pop.perturb()
        print(g, pop.update(noise, pop.evaluate(weights)), flush=True)
        del noise, weights


main()
