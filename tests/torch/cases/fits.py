# SPDX-License-Identifier: Apache-2.0
# A model of 14 billion parameters in bfloat16 fills a card of 40 GB, on a host that needs a fraction of that.
# expect-silent: exit=0
# needs: torch
# gpu: sim:a100-40gb
import resource

import torch

with torch.device("meta"):
    model = torch.nn.Sequential(*(torch.nn.Linear(16384, 16384, dtype=torch.bfloat16) for _ in range(52)))
model.to_empty(device="cuda")
for parameter in model.parameters():
    torch.nn.init.zeros_(parameter)
with torch.no_grad():
    model(torch.zeros(1, 16384, dtype=torch.bfloat16, device="cuda"))
torch.cuda.synchronize()
assert 26e9 < torch.cuda.max_memory_allocated() < 29e9, torch.cuda.max_memory_allocated()
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20, "more than 4 GiB of the host's memory"
