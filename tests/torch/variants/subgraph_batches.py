# SPDX-License-Identifier: Apache-2.0
# label: fragmentation
import argparse
import torch
import torch.nn as nn

DIM = 512
PER_MIB = 2 ** 20 // (4 * DIM)


class Summary(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.gate = nn.Linear(DIM, hidden)
        self.out = nn.Linear(hidden, DIM)

    def forward(self, rows):
        return self.out(torch.relu(self.gate(rows)))


class GraphStore:
    """Features of a graph that are drawn when asked for."""

    def __init__(self, scale):
        self.scale = scale

    def nodes(self, mib):
        return int(mib * self.scale) * PER_MIB

    def normalise_all(self):
        x = torch.empty(self.nodes(5632), DIM, device="cuda").normal_()
        x.clamp_(-3, 3)

    def features(self, mib):
        return torch.empty(self.nodes(mib), DIM, device="cuda").normal_()


def cluster_sizes(n, largest, step):
    return [largest - step * i for i in range(n)]


@torch.no_grad()
def encode_clusters(store, net, sizes, anchors):
    """All clusters of a round are drawn, since boundary nodes read their neighbours."""
    drawn = []
    for i, mib in enumerate(sizes):
        drawn.append(store.features(mib))
        anchors[i] = torch.zeros(store.nodes(9 + i % 5), DIM, device="cuda")  #@here
    for i, feats in enumerate(drawn):
        neighbour = drawn[i - 1]
        anchors[i][:64] = net(feats[:64]) + net(neighbour[:64])


@torch.no_grad()
def link_scores(store, anchors, mib):
    scores = torch.empty(store.nodes(mib), DIM, device="cuda")
    for i, a in anchors.items():
        scores[i].copy_(a[0])
    return scores[0].sum().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=16)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    a = ap.parse_args()
    store, net = GraphStore(a.scale), Summary(64).cuda()
    sizes = cluster_sizes(12, 615, 30) if a.variant == "a" else cluster_sizes(10, 660, 30)
    anchors = {}
    store.normalise_all()
    encode_clusters(store, net, sizes, anchors)
    for turn in range(a.turns):
        mib = 200 if turn < 8 else 2980
        print(turn, mib, link_scores(store, anchors, mib), flush=True)


main()
