# SPDX-License-Identifier: Apache-2.0
# A program that halves its batch until it fits: a note, no alarm.
# expect-note: cause=oom-capacity|oom-request-too-large exit=0
# needs: torch
# alone
import torch

rows = 1 << 22
while True:
    try:
        x = torch.empty(rows, 65536, device="cuda")  # <- note
        break
    except torch.OutOfMemoryError:
        rows //= 2
print("fits" if rows else "does not")
