# SPDX-License-Identifier: Apache-2.0
# One rank evaluates and calls a collective that the others do not: from there on the calls are shifted against each other.
# expect: cause=nccl-rank-divergence certainty=certain exit=1
# needs: torch
# gpu: sim:h200*3
# uses: helpers/ranks.py
import torch
import torch.distributed as dist

from helpers import ranks

rank = ranks.join(3)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).cuda(), device_ids=[rank])
for step in range(4):
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    if rank == 0 and step == 1:
        best = torch.zeros(1, device="cuda")
        dist.broadcast(best, src=0)  # <- here
torch.cuda.synchronize()
