# SPDX-License-Identifier: Apache-2.0
# label: oom-capacity oom-request-too-large asked
"""Segments CT volumes window by window."""
import torch
import torch.nn as nn

ORGANS = 104
WINDOW, STRIDE = 96, 64


def windows(shape):
    for z in range(0, max(1, shape[0] - WINDOW + 1), STRIDE):
        for y in range(0, shape[1] - WINDOW + 1, STRIDE):
            for x in range(0, shape[2] - WINDOW + 1, STRIDE):
                yield slice(z, z + WINDOW), slice(y, y + WINDOW), slice(x, x + WINDOW)


@torch.inference_mode()
def segment(net, volume):
    scores = torch.zeros((ORGANS, *volume.shape), device="cuda")
    weight = torch.zeros(volume.shape, device="cuda")
    for part in windows(volume.shape):
        out = net(volume[part][None, None])[0]
        scores[(slice(None), *part)] += out
        weight[part] += 1
    return (scores / weight).argmax(0)


net = nn.Sequential(nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv3d(8, ORGANS, 1)).cuda().eval()
print(segment(net, torch.rand(128, 256, 256, device="cuda")).shape)
depth = 320  #@scale
print(segment(net, torch.rand(depth, 256, 256, device="cuda")).shape)
