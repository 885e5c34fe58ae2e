# SPDX-License-Identifier: Apache-2.0
# CuPy's pool in the same process has most of the card.
# expect: cause=oom-other-library certainty=certain,likely exit=1
# needs: torch cupy
# alone
import cupy
import torch

free, _ = torch.cuda.mem_get_info()
table = cupy.empty(free - (20 << 30), dtype=cupy.uint8)  # <- here  <- culprit
x = torch.empty(30 << 30, dtype=torch.uint8, device="cuda")  # <- asked
