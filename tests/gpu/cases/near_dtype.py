# SPDX-License-Identifier: Apache-2.0
# Mixed precision where PyTorch promotes or casts by itself.
# expect-silent: exit=0
# needs: torch
# same-output
import torch

a = torch.ones(4, 4, device="cuda")
h = a.half()
print((a + h).dtype, (h * 2).dtype)
with torch.autocast("cuda", dtype=torch.float16):
    print((a @ h).dtype)
