# SPDX-License-Identifier: Apache-2.0
# The process replaces itself after it has used CUDA; the new program is the one that fails.
# expect: cause=oom-request-too-large exit=1
# needs: torch
import os
import sys

import torch

if len(sys.argv) == 1:
    print(torch.ones(3, device="cuda").sum().item(), flush=True)
    os.execv(sys.executable, [sys.executable, __file__, "again"])
torch.empty(1 << 42, device="cuda")  # <- here
