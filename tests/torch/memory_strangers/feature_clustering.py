# SPDX-License-Identifier: Apache-2.0
# label: oom-growth oom-capacity
"""Extracts features of a data set and clusters them."""
import torch
import torch.nn as nn

IMAGES, BATCH, DIM = 1800000, 6000, 1024


@torch.no_grad()
def extract(model, images):
    feats = []
    done = 0
    while done < images:
        x = torch.rand(BATCH, 256, device="cuda")
        feats.append(model(x))  #@here
        done += BATCH
    return torch.cat(feats)  #@here


def kmeans(x, k, rounds=10):
    centers = x[:k].clone()
    for _ in range(rounds):
        owner = torch.cat([torch.cdist(part, centers).argmin(1) for part in x.split(100000)])
        centers.index_add_(0, owner, x)
    return centers


backbone = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, DIM)).cuda().eval()
scale = 1  #@scale
features = extract(backbone, IMAGES * scale)  #@here
print(kmeans(features, 1000).shape)
