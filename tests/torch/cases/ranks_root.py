# SPDX-License-Identifier: Apache-2.0
# Each rank broadcasts from itself, where all should name the same root.
# expect: cause=nccl-rank-divergence certainty=certain exit=1
# needs: torch
# gpu: sim:h200*3
# uses: helpers/ranks.py
import torch
import torch.distributed as dist

from helpers import ranks

rank = ranks.join(3)
weights = torch.zeros(1000, device="cuda")
dist.broadcast(weights, src=1 if rank == 2 else 0)  # <- here
torch.cuda.synchronize()
dist.barrier()
