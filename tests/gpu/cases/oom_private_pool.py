# SPDX-License-Identifier: Apache-2.0
# A MemPool keeps most of the card after its tensors are gone, and nothing else can use it.
# expect: cause=oom-private-pool certainty=certain,likely exit=1
# needs: torch
# alone
import torch

GIB = 1 << 30
pool = torch.cuda.MemPool()
free, _ = torch.cuda.mem_get_info()
with torch.cuda.use_mem_pool(pool):
    held = [torch.empty(GIB, dtype=torch.uint8, device="cuda") for _ in range(free // GIB - 3)]  # <- here  <- culprit
del held
batch = torch.empty(6 * GIB, dtype=torch.uint8, device="cuda")
print(batch.shape)
