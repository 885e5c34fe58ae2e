# SPDX-License-Identifier: Apache-2.0
# One row too many, right behind the last byte that is mapped: an expandable segment is mapped in
# steps of 20 MiB, this tensor fills 50 of them, and what follows is reserved and empty.
# expect: cause=illegal-access-out-of-bounds certainty=certain exit=1 code=700 kernel=fill_rows
# needs: torch cupy
# env: PYTORCH_ALLOC_CONF=expandable_segments:True
import numpy as np
import torch
from helpers import kernels

fill_rows = kernels.get("fill_rows")
ROWS, COLUMNS = 500, 512 * 1024


def first_columns(x, rows):
    fill_rows((rows,), (256,), (x.data_ptr(), np.int64(x.shape[1]), np.float32(1)))  # <- here


x = torch.zeros(ROWS, COLUMNS, device="cuda")
first_columns(x, ROWS)
print(x[ROWS - 1, 0].item())
first_columns(x, ROWS + 1)
y = torch.ones(16, device="cuda") * 3
print(y.sum().item())
