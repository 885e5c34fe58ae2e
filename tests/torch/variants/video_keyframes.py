# SPDX-License-Identifier: Apache-2.0
# label: capacity
import argparse
from collections import deque
import torch
import torch.nn as nn
import torch.nn.functional as F


class FrameNet(nn.Module):
    def __init__(self, ch, depth):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(3 if i == 0 else ch, ch, 3, padding=1) for i in range(depth))
        self.rgb = nn.Conv2d(ch, 3, 1)

    def features(self, x):
        for conv in self.convs:
            x = F.relu(conv(x))  #@here
        return x

    def forward(self, x, memory):
        f = self.features(x)
        blend = f + 0.1 * memory if memory is not None else f
        return self.rgb(blend), f


class Memory:
    """Features of the last clips, averaged at the size of the clip at hand."""

    def __init__(self, clips):
        self.window = deque(maxlen=clips)

    def read(self, size):
        if not self.window:
            return None
        mean = sum(self.window) / len(self.window)
        return mean if mean.shape[-1] == size else F.interpolate(mean, size=(size, size))

    def push(self, f):
        self.window.append(F.adaptive_avg_pool2d(f.detach(), 256))


def clips(turns, frames, size, key_size, every):
    for t in range(turns):
        s = key_size if t % every == every - 1 else size
        yield s, torch.rand(frames, 3, s, s, device="cuda")


class Denoiser:
    def __init__(self, net, memory):
        self.net, self.memory = net, memory
        self.opt = torch.optim.Adam(net.parameters(), lr=1e-4)

    def train_clip(self, size, clip):
        noisy = clip + 0.05 * torch.randn_like(clip)
        out, feats = self.net(noisy, self.memory.read(size))
        loss = F.l1_loss(out, clip)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.memory.push(feats)
        return loss.item()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=40)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    depth = 6 if a.variant == "a" else 7
    job = Denoiser(FrameNet(32, depth).cuda(), Memory(clips=6))
    frames = max(1, int(16 * a.scale))
    for i, (size, clip) in enumerate(clips(a.turns, frames, 256, 960, every=15)):
        print(i, size, job.train_clip(size, clip), flush=True)
