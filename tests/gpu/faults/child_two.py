# SPDX-License-Identifier: Apache-2.0
# Two processes fail, one after the other: the first is the verdict, the second is listed.
# expect: cause=label-out-of-range certainty=certain,likely exit=1 code=710 function=first
# expect-other: cause=index-out-of-range code=710
# needs: torch
import sys

import torch
import torch.multiprocessing as mp
import torch.nn.functional as F


def first(failed):
    try:
        logits = torch.randn(8, 4, device="cuda")
        loss = F.cross_entropy(logits, torch.full((8,), 4, device="cuda"))  # <- here
        loss.item()
    finally:
        failed.set()


def second(failed):
    x = torch.randn(50, 4, device="cuda")
    print(x.shape)
    failed.wait()
    rows = x[torch.arange(45, 55, device="cuda")]  # <- other
    rows = rows + 1
    rows.sum().item()


if __name__ == "__main__":
    context = mp.get_context("spawn")
    failed = context.Event()
    ranks = [context.Process(target=f, args=(failed,)) for f in (first, second)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    sys.exit(max(rank.exitcode for rank in ranks))
