# SPDX-License-Identifier: Apache-2.0
# One rank alone calls a barrier at the end, when the others have ended: it is the odd one, not they.
# expect: cause=nccl-rank-divergence certainty=likely exit=1
# needs: torch
# gpu: sim:h200*4
# uses: helpers/ranks.py
import torch
import torch.distributed as dist

from helpers import ranks

rank = ranks.join(4)
for step in range(3):
    dist.all_reduce(torch.ones(8, device="cuda"))
torch.cuda.synchronize()
if rank == 2:
    dist.barrier()  # <- here
dist.destroy_process_group()
