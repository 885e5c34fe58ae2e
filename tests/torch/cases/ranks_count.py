# SPDX-License-Identifier: Apache-2.0
# One rank reduces fewer elements than the others, who notice it when it is long gone on: the verdict is about that rank and that line.
# expect: cause=nccl-rank-divergence certainty=certain exit=1
# needs: torch
# gpu: sim:h200*4
# uses: helpers/ranks.py
import time

import torch
import torch.distributed as dist

from helpers import ranks

rank = ranks.join(4)
for step in range(6):
    values = torch.ones(8, device="cuda")
    if rank == 3 and step == 2:
        dist.all_reduce(values[:7])  # <- here
    else:
        time.sleep(0 if rank == 3 else 0.2)
        dist.all_reduce(values)
torch.cuda.synchronize()
time.sleep(10)
