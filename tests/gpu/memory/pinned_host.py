# SPDX-License-Identifier: Apache-2.0
# More page-locked host memory than the machine has: CUDA says "out of memory", but the card is empty.
# expect: cause=oom-pinned-host certainty=certain,likely exit=1
# needs: torch
# alone
import torch

torch.zeros(1, device="cuda")
staging = torch.empty(8 << 40, dtype=torch.uint8, pin_memory=True)  # <- here
