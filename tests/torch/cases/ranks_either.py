# SPDX-License-Identifier: Apache-2.0
# Two ranks call different collectives: either may be wrong, and both lines are told.
# expect: cause=nccl-rank-divergence certainty=certain exit=1
# expect-other: cause=nccl-rank-divergence certainty=certain
# needs: torch
# gpu: sim:h200*2
# uses: helpers/ranks.py
import torch
import torch.distributed as dist

from helpers import ranks

rank = ranks.join(2)
values = torch.ones(8, device="cuda")
for step in range(3):
    dist.all_reduce(values) if rank == 0 or step != 1 else dist.broadcast(values, src=0)  # <- here
torch.cuda.synchronize()
