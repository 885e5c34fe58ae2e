# SPDX-License-Identifier: Apache-2.0
# The process limits itself; the card has room.
# expect: cause=oom-memory-fraction certainty=certain,likely exit=1
# needs: torch
import torch


def load(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")  # <- here


torch.cuda.set_per_process_memory_fraction(0.01)
load(1 << 20)
load(2 << 30)
