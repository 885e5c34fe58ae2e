# SPDX-License-Identifier: Apache-2.0
"""FSDP on one rank: the parameters of each part are one tensor."""
import os
import truth
import torch
from torch import distributed, nn
from torch.distributed.fsdp import FullyShardedDataParallel

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
distributed.init_process_group("nccl", store=distributed.HashStore(), rank=0, world_size=1)
torch.cuda.set_device(0)
blocks = [FullyShardedDataParallel(nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)), device_id=0, use_orig_params=True) for _ in range(3)]
model = FullyShardedDataParallel(nn.Sequential(*blocks, nn.Linear(512, 10)), device_id=0, use_orig_params=True)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(64, 512, device="cuda")).sum().backward()
    optimizer.step()
kept = model(torch.randn(64, 512, device="cuda"))
truth.tell(model, parameters=False)
