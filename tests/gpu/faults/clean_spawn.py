# SPDX-License-Identifier: Apache-2.0
# Several processes, all clean.
# expect-silent: exit=0
# needs: torch
import torch
import torch.multiprocessing as mp


def rank(index):
    x = torch.full((100,), float(index), device="cuda")
    assert (x * 2).sum().item() == 200.0 * index


if __name__ == "__main__":
    mp.spawn(rank, nprocs=2)
    print(torch.ones(10, device="cuda").sum().item())
