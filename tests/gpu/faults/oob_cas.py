# SPDX-License-Identifier: Apache-2.0
# An atomic whose result is used, on a slot that does not exist.
# expect: cause=illegal-access-out-of-bounds certainty=certain exit=1 code=700 kernel=claim
# needs: torch cupy
import numpy as np
import torch
from helpers import kernels

claim = kernels.get("claim")
owner, won = (torch.zeros(64, dtype=torch.int32, device="cuda") for _ in range(2))
slots = torch.arange(64, device="cuda")
claim((1,), (64,), (owner.data_ptr(), slots.data_ptr(), won.data_ptr(), np.int32(64)))
print(won.sum().item())
wrong = slots * (1 << 36)
claim((1,), (64,), (owner.data_ptr(), wrong.data_ptr(), won.data_ptr(), np.int32(64)))  # <- here
for _ in range(5):
    won = won + 1
print(won.sum().item())
