# SPDX-License-Identifier: Apache-2.0
# A 1024^4 tensor, caught: a note.
# expect-note: cause=oom-request-too-large exit=0
# needs: torch
# same-output
import torch

try:
    x = torch.empty(1024, 1024, 1024, 1024, device="cuda")  # <- note
except torch.cuda.OutOfMemoryError:
    print("too large; going on without it")
print(torch.ones(2, device="cuda").sum().item())
