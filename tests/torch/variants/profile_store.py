# SPDX-License-Identifier: Apache-2.0
# label: fragmentation
"""Per-user profile matrices for on-line ranking; trial users expire together."""
import argparse
import torch


class Store:
    def __init__(self, rows, dim):
        self.rows, self.dim = rows, dim
        self.profiles = {}
        self.trial = set()

    def register(self, user, trial):
        self.profiles[user] = torch.zeros(self.rows, self.dim, device="cuda")  #@here
        if trial:
            self.trial.add(user)

    def expire(self):
        for user in self.trial:
            self.profiles.pop(user, None)
        gone, self.trial = len(self.trial), set()
        return gone

    def touch(self, users):
        for u in users:
            if u in self.profiles:
                self.profiles[u].mul_(0.99)


class Ranker:
    def __init__(self, store):
        self.store = store

    def rank(self, user, candidates):
        profile = self.store.profiles[user]
        items = torch.randn(candidates, profile.shape[1], device="cuda")
        items.mul_(profile[0])
        return items.shape[0]


def rows_of(mib, dim):
    return int(mib * 2 ** 20) // (4 * dim)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=22)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    dim = 512
    store = Store(rows=360 if a.variant == "a" else 350, dim=dim)
    ranker = Ranker(store)
    wave = int(660 * a.scale)
    for turn in range(a.turns):
        if turn < 10:
            for u in range(turn * wave, (turn + 1) * wave):
                store.register(u, trial=u % 2 == 1)
        elif turn == 10:
            print("expired", store.expire())
        else:
            big = turn >= 16
            print("ranked", ranker.rank(0, rows_of(2250 * a.scale if big else 0.5, dim)))
        store.touch(range(0, 50, 2))
        print(turn, len(store.profiles), flush=True)


if __name__ == "__main__":
    main()
