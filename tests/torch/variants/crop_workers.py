# SPDX-License-Identifier: Apache-2.0
# label: memory-fraction
"""Whole-slide inference with several worker threads that share one process."""
import argparse
from concurrent.futures import ThreadPoolExecutor
import torch
import torch.nn as nn
import torch.nn.functional as F


class CropNet(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.c1 = nn.Conv2d(3, ch, 3, padding=1)
        self.c2 = nn.Conv2d(ch, ch, 3, padding=1)
        self.out = nn.Conv2d(ch, 2, 1)

    def forward(self, x):
        return self.out(F.relu(self.c2(F.relu(self.c1(x)))))


class Slide:
    def __init__(self, crops, per_crop, size):
        self.crops, self.per_crop, self.size = crops, per_crop, size

    def crop(self, i):
        torch.manual_seed(i)
        return torch.rand(self.per_crop, 3, self.size, self.size, device="cuda")


class Worker:
    def __init__(self, number, of, ch):
        self.number, self.of, self.ch = number, of, ch
        self.net = None
        self.canvas = None

    def start(self, slide):
        torch.cuda.set_per_process_memory_fraction(1.0 / self.of)  #@here
        self.net = CropNet(self.ch).cuda().eval()
        self.canvas = torch.zeros(slide.per_crop, 2 * slide.crops, slide.size, slide.size, device="cuda")
        return self.number

    @torch.inference_mode()
    def work(self, slide, i):
        scores = self.net(slide.crop(i))
        self.canvas[:, 2 * i:2 * i + 2].copy_(scores)
        return i, scores.mean().item()


def run(workers, slide, turns):
    pool = ThreadPoolExecutor(len(workers))
    print("started", [j.result() for j in [pool.submit(w.start, slide) for w in workers]])
    for t in range(turns):
        jobs = [pool.submit(w.work, slide, t % slide.crops) for w in workers]
        print(t, [j.result()[0] for j in jobs], flush=True)
    return sum(w.canvas.sum().item() for w in workers)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=16)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    n = 4 if a.variant == "a" else 5
    slide = Slide(crops=10, per_crop=max(1, int(36 * a.scale)), size=512 if a.variant == "a" else 448)
    print(run([Worker(i, n, 8) for i in range(n)], slide, a.turns))
