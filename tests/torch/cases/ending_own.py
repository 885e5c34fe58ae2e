# SPDX-License-Identifier: Apache-2.0
# A batch that is too large is skipped, and the program goes on; what it ends of is its own.
# expect-note: cause=oom-request-too-large exit=3
# needs: torch
import sys

import torch

done = 0
for size in (8, 1 << 40, 16):
    try:
        done += torch.empty(size, device="cuda").add_(1).numel()  # <- note
    except torch.cuda.OutOfMemoryError as e:
        print("skipped", size, str(e)[:20])
if done < 100:
    sys.exit(3)
