# SPDX-License-Identifier: Apache-2.0
# The fault is on a side stream while the main stream works on.
# expect: cause=index-out-of-range certainty=certain,likely exit=1 code=710
# needs: torch
import torch

side = torch.cuda.Stream()
table = torch.randn(200, 32, device="cuda")
wanted = torch.tensor([0, 100, 200], device="cuda")
y = torch.ones(1000, device="cuda")


def prefetch(index):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        return table.index_select(0, index) * 0.5  # <- here


ready = prefetch(wanted - 1 + (wanted == 0))
torch.cuda.synchronize()
rows = prefetch(wanted)
for _ in range(50):
    y = y * 1.01
torch.cuda.current_stream().wait_stream(side)
print(y.sum().item())
