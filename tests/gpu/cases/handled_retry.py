# SPDX-License-Identifier: Apache-2.0
# Halving the batch after each OOM until it fits: several notes of one kind, exit 0.
# expect-note: cause=oom-request-too-large exit=0
# needs: torch
# same-output
import torch

rows = 1 << 40
while True:
    try:
        x = torch.ones(rows, 8, device="cuda")  # <- note
        break
    except torch.OutOfMemoryError:
        rows >>= 6
print(rows)
