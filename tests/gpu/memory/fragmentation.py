# SPDX-License-Identifier: Apache-2.0
# Every second block of 9 MiB is freed: half of the card is free, but no segment is.
# expect: cause=oom-fragmentation certainty=certain,likely exit=1
# needs: torch
# alone
import torch

MIB = 1 << 20
pieces = []
free, _ = torch.cuda.mem_get_info()
for _ in range(int(free * 0.97) // (20 * MIB)):
    pieces += [torch.empty(9 * MIB, dtype=torch.uint8, device="cuda") for _ in range(2)]  # <- culprit
del pieces[::2]
batch = torch.empty(8 << 30, dtype=torch.uint8, device="cuda")  # <- here
print(batch.shape)
