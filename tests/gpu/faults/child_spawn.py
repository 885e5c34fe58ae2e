# SPDX-License-Identifier: Apache-2.0
# One of two spawned ranks gets a bad label.
# expect: cause=label-out-of-range certainty=certain,likely exit=1 code=710 function=step
# needs: torch
import torch
import torch.multiprocessing as mp
import torch.nn.functional as F


def step(model, labels):
    x = torch.randn(labels.shape[0], 16, device="cuda")
    return F.cross_entropy(model(x), labels)  # <- here


def rank(index):
    model = torch.nn.Linear(16, 5).cuda()
    total = step(model, torch.randint(0, 5, (32,), device="cuda"))
    if index == 1:
        total = total + step(model, torch.full((32,), 5, device="cuda"))
    total.item()


if __name__ == "__main__":
    mp.spawn(rank, nprocs=2)
