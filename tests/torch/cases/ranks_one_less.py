# SPDX-License-Identifier: Apache-2.0
# One rank has fewer batches and ends; the others wait in a call for it.
# expect: cause=nccl-rank-divergence certainty=likely exit=1
# needs: torch
# gpu: sim:h200*3
# uses: helpers/ranks.py
import torch
import torch.distributed as dist

from helpers import ranks

rank = ranks.join(3)
for step in range(3 if rank == 1 else 4):
    dist.all_reduce(torch.ones(8, device="cuda"))  # <- here
torch.cuda.synchronize()
dist.destroy_process_group()
